import { parseWorld } from '@unbounded/topology';
import { describe, expect, test } from 'vitest';
import { objectsFor } from '../testdata.ts';
import type { Snapshot } from '../world/source.port.ts';
import { echoFamiliesOf, findLocalNode } from './local-node.ts';

describe('what the node says anew counts once its peers hear it', () => {
  /** Of w1, whose peers know these. */
  const found = (
    listed: { readonly internalIPs?: readonly string[]; readonly tunnelProtocols?: readonly string[] },
    own: { readonly internalIps?: readonly string[]; readonly protocols?: readonly string[] } = {},
  ) => {
    const objects = objectsFor('VXLAN');
    const slices = objects.slices.map((slice) => ({
      ...slice,
      nodes: slice.nodes!.map((node) => (node.name === 'w1' ? { ...node, ...listed } : node)),
    }));
    const internalIps = own.internalIps ?? ['10.1.0.30'];
    const snapshot: Snapshot = {
      objects: { ...objects, slices },
      node: { podCidrs: ['100.65.30.0/24'], internalIps, externalIps: [] },
      version: 1,
    };
    const local = findLocalNode(snapshot, parseWorld(snapshot.objects), {
      nodeName: 'w1',
      protocols: own.protocols ?? ['GENEVE', 'IPIP', 'None', 'VXLAN', 'WireGuard'],
      underlay: { device: 'eth0', mtuBytes: 1500 },
      pathMtuBytes: new Map(),
      keys: { publicKey: '5ZqNUjYwTkSgDnjz9kVCoCjmVLGAXR3zR0O2jPuoL0o=', keyGeneration: 0, nextPublicKey: undefined },
      established: new Set(),
      protectedAddresses: [],
    });
    if (!('member' in local)) throw new Error(local.message);
    return local.member;
  };

  test.each([
    ['one that it can speak now, and they do not know of', ['None', 'VXLAN'], ['GENEVE', 'VXLAN'], ['VXLAN']],
    ['one that they know, and it cannot speak any more', ['GENEVE', 'VXLAN'], ['VXLAN'], ['VXLAN']],
  ])('protocols: %s', (_, tunnelProtocols, protocols, agreed) => {
    expect(found({ tunnelProtocols }, { protocols }).protocols).toEqual(agreed);
  });

  test('protocols: none are known of a node that has not said any', () => {
    expect(found({ tunnelProtocols: undefined as never }).protocols).toBeUndefined();
  });

  test.each([
    ['in another order', ['10.1.0.31', '10.1.0.30'], ['10.1.0.30', '10.1.0.31'], ['10.1.0.31', '10.1.0.30']],
    ['a new one in front', ['10.1.0.30'], ['10.1.0.99', '10.1.0.30'], ['10.1.0.30', '10.1.0.99']],
    ['the former one gone', ['10.1.0.30'], ['10.1.0.99'], ['10.1.0.99']],
  ])('addresses: %s', (_, internalIPs, internalIps, expected) => {
    expect(found({ internalIPs }, { internalIps }).internalIps).toEqual(expected);
  });
});

test.each([
  ['6.1.0-18-amd64', [4, 6]],
  ['5.14.0-362.el9.x86_64', [4, 6]],
  ['5.10.0-28-amd64', [6]],
  ['4.18.0', [6]],
])('under Linux %s echoes have the families %j', (release, families) => {
  expect(echoFamiliesOf(release)).toEqual(families);
});
