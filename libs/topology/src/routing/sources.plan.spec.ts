import { firstAddress, hostPrefix, type Prefix } from '@unbounded/ip';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { accepts, networkOf } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import { anyConnectedCluster } from '../random-cluster.testdata.ts';
import { cluster, gateway, pool } from '../testdata.ts';
import type { NodePlan } from '../plan.ts';
import type { Member } from '../world/world.ts';

const podsOf = ({ podCidrs }: Member): Prefix[] => podCidrs.map((block) => hostPrefix(firstAddress(block)));
const sendersTo = (objects: ReturnType<typeof cluster>, node: string): Record<string, readonly string[]> => {
  const { senders } = planIn(objects, node, { dataplane: 'netlink' });
  return Object.fromEntries(senders!.map(({ remoteIp, sources }) => [remoteIp, sources]));
};

describe('who may bring what out of an unencrypted tunnel (netlink data path)', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });
  const behind = ['10.2.0.0/24', '100.66.0.0/16'];

  test('a worker its own pods, and every gateway of its site its own and the far site’s', () => {
    expect(sendersTo(objects, 's1-w1')).toEqual({
      '10.1.0.32': ['100.65.32.0/24'],
      '10.1.0.21': [behind[0], '100.65.21.0/24', behind[1]],
      '10.1.0.22': [behind[0], '100.65.22.0/24', behind[1]],
    });
  });

  test('another gateway of the pool brings everything that the pool does, but not our own pods', () => {
    const network = networkOf(objects, 'netlink');
    const bringsPodOf = (peer: string): boolean =>
      accepts(network, 's1-g1', 's1-g2', podsOf(network.members.get(peer)!)[0]!);
    expect(['s1-g2', 's1-w1', 's2-w1', 's2-g1'].map(bringsPodOf)).toEqual([true, true, true, true]);
    expect(bringsPodOf('s1-g1')).toBe(false);
  });

  test('who routes a wide block brings no pod inside it that another node has', () => {
    const routing = {
      ...objects,
      gatewayPools: [
        objects.gatewayPools[0]!,
        pool('p2', [gateway(2, 1), gateway(2, 2)], { routedCidrs: ['100.64.0.0/13'] }),
      ],
    };
    const network = networkOf(routing, 'netlink');
    const bringsPodOf = (peer: string): boolean =>
      accepts(network, 's1-w1', 's1-g1', podsOf(network.members.get(peer)!)[0]!);
    expect(['s1-w1', 's1-w2', 's1-g2'].map(bringsPodOf)).toEqual([false, false, false]);
    expect(['s1-g1', 's2-w1', 's2-g2'].map(bringsPodOf)).toEqual([true, true, true]);
    expect(accepts(network, 's1-w1', 's1-g1', hostPrefix({ family: 4, value: 0x64470101n }))).toBe(true); // 100.71.1.1
  });

  test('who is encrypted or plainly routed brings nothing by a tunnel', () => {
    for (const protocol of ['WireGuard', 'None'] as const)
      expect(sendersTo(cluster({ sites: 1, gateways: 2, workers: 2, protocol }), 's1-w1')).toEqual({});
  });

  test('the eBPF data path needs none of it: its entries say the same', () => {
    expect(planIn(objects, 's1-w1').senders).toBeUndefined();
  });
});

/** Pods of every node, as each receiver may see them from each peer that sends by an unencrypted tunnel; but not its own. */
const forEachPacket = (
  plans: ReadonlyMap<string, NodePlan>,
  members: ReadonlyMap<string, Member>,
  look: (receiver: string, sender: string, source: Prefix) => void,
): void => {
  for (const [receiver, { senders }] of plans)
    for (const { node: sender } of senders ?? [])
      for (const member of members.values())
        if (member.name !== receiver) for (const source of podsOf(member)) look(receiver, sender, source);
};

test('the netlink data path takes no packet that the eBPF one drops, and drops none but a forwarder’s that it takes', () => {
  let taken = 0;
  fc.assert(
    fc.property(anyConnectedCluster, (objects) => {
      const [ebpf, netlink] = [networkOf(objects), networkOf(objects, 'netlink')];
      forEachPacket(netlink.plans, netlink.members, (receiver, sender, source) => {
        const [wanted, found] = [ebpf, netlink].map((network) => accepts(network, receiver, sender, source));
        const { forwarders } = ebpf.plans.get(receiver)!;
        const { internalIps, externalIps } = ebpf.members.get(sender)!;
        const isForwarder = [...internalIps, ...externalIps].some((ip) => forwarders.includes(ip));
        if (found) taken++;
        if (isForwarder ? found && !wanted : found !== wanted)
          expect([receiver, sender, source, found]).toEqual([receiver, sender, source, wanted]);
      });
    }),
    { numRuns: 100 },
  );
  expect(taken).toBeGreaterThan(0);
});
