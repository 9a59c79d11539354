import { expect, test } from 'vitest';
import { badConditions, type Stated } from './conditions.ts';

const object = (kind: string, type: string, status: string, reason = 'R'): Stated => ({
  kind,
  metadata: { name: 'x' },
  status: { conditions: [{ type, status, reason, message: 'why' }] },
});

test.each<[string, Stated, string[]]>([
  ['False on one of our kinds', object('Site', 'NodeCidrsValid', 'False'), ['Site x: NodeCidrsValid=False R: why']],
  [
    'Unknown, because it passes',
    object('GatewayPool', 'GatewaysReporting', 'Unknown'),
    ['GatewayPool x: GatewaysReporting=Unknown R: why'],
  ],
  [
    'a degraded node',
    object('Node', 'UnboundedNetworkDegraded', 'True'),
    ['Node x: UnboundedNetworkDegraded=True R: why'],
  ],
  ['a node that is not ready', object('Node', 'Ready', 'False'), ['Node x: Ready=False R: why']],
  ['not: a ready node', object('Node', 'Ready', 'True'), []],
  ['not: pressure on the machine', object('Node', 'MemoryPressure', 'True'), []],
  ['not: an object without conditions', { kind: 'GatewayPoolNode', metadata: { name: 'x' } }, []],
  ['not: what the options bring about', object('Node', 'UnboundedNetworkDegraded', 'True', 'ProtocolUnsupported'), []],
])('%s', (_, subject, want) => expect(badConditions([subject], 'ProtocolUnsupported')).toEqual(want));
