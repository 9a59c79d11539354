import { expect, test } from 'vitest';
import { countersIn, dropsSince } from './drops.ts';

const SNMP = `Ip: Forwarding DefaultTTL InDiscards OutDiscards
Ip: 1 64 2 3
IcmpMsg: InType3 OutType3
IcmpMsg: 5 6
Udp: InDatagrams NoPorts RcvbufErrors
Udp: 10 0 7
`;

test('counters are read from both forms of the kernel', () => {
  const counters = new Map(
    countersIn(`${SNMP}Ip6InDiscards                   \t4\nUdp6RcvbufErrors                \t8\n`),
  );
  expect(Object.fromEntries(counters)).toMatchObject({
    ...{ IpInDiscards: 2, IpOutDiscards: 3, UdpRcvbufErrors: 7, UdpNoPorts: 0 },
    ...{ IcmpMsgInType3: 5, Ip6InDiscards: 4, Udp6RcvbufErrors: 8 },
  });
});

test('what was dropped since then is said, and nothing else', () => {
  const before = new Map([['s1-w1 eth0', 3]]);
  const now = new Map([
    ['s1-w1 eth0', 3],
    ['s1-w1 UdpRcvbufErrors', 2],
  ]);
  expect([dropsSince(before, now), dropsSince(now, now)]).toEqual(['s1-w1 UdpRcvbufErrors: 2', 'nothing']);
});
