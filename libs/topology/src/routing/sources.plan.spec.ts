import { firstAddress, hostPrefix, type Prefix } from '@unbounded/ip';
import { describe, expect, test } from 'vitest';
import { accepts, networkOf } from '../explain/forwarding-simulation.ts';
import { planIn } from '../explain/plan-table.ts';
import { cluster, gateway, pool } from '../testdata.ts';
import type { Member } from '../world/world.ts';

const podsOf = ({ podCidrs }: Member): Prefix[] => podCidrs.map((block) => hostPrefix(firstAddress(block)));
const sendersTo = (objects: ReturnType<typeof cluster>, node: string): Record<string, readonly string[]> => {
  const { tunnels } = planIn(objects, node);
  return Object.fromEntries(tunnels.map(({ remoteIp, sources }) => [remoteIp, sources]));
};

describe('who may bring what out of an unencrypted tunnel', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });
  const behind = ['10.2.0.0/24', '100.66.0.0/16'];

  test('a worker its own pods, and every gateway of its site its own, the far site’s and our echo', () => {
    const echo = '100.65.31.0/32';
    expect(sendersTo(objects, 's1-w1')).toEqual({
      '10.1.0.32': ['100.65.32.0/24'],
      '10.1.0.21': [behind[0], '100.65.21.0/24', behind[1], echo],
      '10.1.0.22': [behind[0], '100.65.22.0/24', behind[1], echo],
    });
  });

  test('another gateway of the pool brings everything that the pool does, but not our own pods', () => {
    const network = networkOf(objects);
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
    const network = networkOf(routing);
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
});
