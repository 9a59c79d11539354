import { describe, expect, test } from 'vitest';
import { type Blocker, faultProblems, forwardingFault } from './forwarding-faults.ts';
import type { PeerReport } from './messages.ts';

const peer = (node: string, more: Partial<PeerReport> = {}): PeerReport => ({
  node,
  family: 4,
  state: 'Healthy',
  graceOver: true,
  knowsNextKey: false,
  ...more,
});
const lost = { forwards: false } as const;
const back = { forwards: true } as const;
const devices = ['vxlan0'];

describe('the node’s own forwarding', () => {
  test('is in order while any echo of a family comes back, or none is sent', () => {
    expect(forwardingFault([peer('g1', lost), peer('g2', back)])).toBeUndefined();
    expect(forwardingFault([peer('w1'), peer('w2')])).toBeUndefined();
  });

  test('is in doubt where none of a family does, though gateways answer', () => {
    expect(forwardingFault([peer('g1', lost), peer('g2', { ...lost, family: 6 }), peer('g3', back)])).toMatchObject({
      families: [6],
      isDoubtful: false,
    });
    expect(forwardingFault([peer('g1', { ...lost, state: 'Unhealthy' })])).toBeUndefined();
  });

  test('is in doubt where several peers miss their echoes, but one alone may say what it likes', () => {
    const doubt = (...peers: PeerReport[]): boolean | undefined => forwardingFault(peers)?.isDoubtful;
    expect(doubt(peer('w1', { missesEchoes: 'here' }), peer('w2'))).toBe(true);
    expect(doubt(peer('w1', { missesEchoes: 'here' }), peer('w2', { missesEchoes: 'all' }))).toBe(false);
    expect(doubt(peer('w1', { missesEchoes: 'all' }), peer('w2', { missesEchoes: 'all' }))).toBe(false);
    expect(doubt(peer('w1', { missesEchoes: 'all' }), peer('w1', { missesEchoes: 'all', family: 6 }))).toBe(true);
    expect(doubt(peer('w1', { missesEchoes: 'here', state: 'Unhealthy' }))).toBeUndefined();
  });
});

describe('what is told', () => {
  const fault = forwardingFault([peer('w1', { missesEchoes: 'here' }), peer('g1', lost)])!;
  const blocker: Blocker = { family: 'inet', table: 'admin', chain: 'forward', handle: 7, comment: 'no routing' };

  test('names rule, chain and table of who was seen to drop an echo, and the command that lets it pass', () => {
    const [problem, ...rest] = faultProblems(fault, { blocker, isTraced: true, devices });
    expect(rest).toEqual([]);
    expect(problem!.reason).toBe('HostFirewallBlocks');
    expect(problem!.message).toBe(
      'rule 7 ("no routing") in chain forward of nftables table inet admin drops packets of the overlay: echoes of w1 (IPv4) do not come back through this node; none of its own comes back through g1 (IPv4); to let them pass, where chain forward sees what is forwarded: nft \'insert rule inet admin forward iifname { "cbr0", "unbounded-echo", "vxlan0" } oifname { "cbr0", "unbounded-echo", "unbounded0", "vxlan0" } accept\'',
    );
  });

  test.each([
    ['ip', 'filter', /let them pass in iptables, or set node-dataplane.hostFirewall=Accept/],
    ['ip6', 'filter', /let them pass in ip6tables, or set/],
    ['inet', 'firewalld', /let them pass in firewalld$/],
    ['inet', 'filter', /: nft 'insert rule inet filter forward/],
  ] as const)('says what to do about table %s %s', (family, table, remedy) => {
    const told = faultProblems(fault, { blocker: { ...blocker, family, table }, isTraced: true, devices });
    expect(told[0]!.message).toMatch(remedy);
  });

  test('names the policy where no rule dropped it', () => {
    const { handle: _, comment: __, ...policy } = blocker;
    expect(faultProblems(fault, { blocker: policy, isTraced: true, devices })[0]!.message).toMatch(
      /^the policy of chain forward of nftables table inet admin drops packets/,
    );
  });

  test('says where else to look when no table dropped any, and that it is being looked for before', () => {
    const messages = [true, false].map(
      (isTraced) => faultProblems(fault, { blocker: undefined, isTraced, devices })[0]!.message,
    );
    expect(messages[0]).toMatch(/net\.ipv4\.ip_forward.*iptables-legacy/);
    expect(messages[1]).toMatch(/is being looked for$/);
  });

  test('is nothing where a single peer may be at fault itself, unless its echo was seen to be dropped here', () => {
    const doubtful = forwardingFault([peer('w1', { missesEchoes: 'all' })])!;
    expect(faultProblems(doubtful, { blocker: undefined, isTraced: true, devices })).toEqual([]);
    expect(faultProblems(doubtful, { blocker, isTraced: true, devices })).toHaveLength(1);
  });
});
