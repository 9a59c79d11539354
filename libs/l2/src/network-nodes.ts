import { MAX_L2_NETWORK_NODES } from '@unbounded/crds';
import type { HostingNode } from './cluster-snapshot.ts';
import type { NetworkCondition } from './network-condition.ts';
import { isOfPart } from './planned.ts';

/** What the nodes that host a Network say of it, and whether they are too many. */

/** By which a node says whether it forwards for its Networks. */
export const L2_NODE_CONDITION = 'UnboundedL2';
const SHOWN_NODES = 3;
/** A node writes its own condition: it cannot make that of a Network as long as it likes. */
const SHOWN_CHARACTERS = 300;

export const nodesFit = (excess: readonly string[]): NetworkCondition => {
  const type = 'NodesFit';
  if (excess.length === 0) {
    const message = `at most ${MAX_L2_NETWORK_NODES} nodes host it`;
    return { type, status: 'True', reason: 'NodesFit', message };
  }
  const message = `nodes ${excess.join(', ')}: a Network has at most ${MAX_L2_NETWORK_NODES} nodes: move the pods to others, or to a further Network`;
  return { type, status: 'False', reason: 'TooManyNodes', message };
};

const complaintOf = (name: string, node: HostingNode | undefined): string[] => {
  const own = node?.status?.conditions?.find(({ type }) => type === L2_NODE_CONDITION);
  if (own?.status !== 'False') return [];
  const { reason = '', message = '' } = own;
  const text = `node ${name}: ${reason}: ${message}`;
  if (isOfPart(reason)) return [];
  return [text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text];
};

/** A node that says nothing, as one that has just begun to host, counts as one that forwards. */
export const nodesForward = (hosts: readonly string[], nodes: ReadonlyMap<string, HostingNode>): NetworkCondition => {
  const type = 'NodesForward';
  const complaints = hosts.flatMap((name) => complaintOf(name, nodes.get(name)));
  if (complaints.length === 0) {
    const message = `no node that hosts it has the condition ${L2_NODE_CONDITION} False`;
    return { type, status: 'True', reason: 'NodesForward', message };
  }
  const more = complaints.length > SHOWN_NODES ? `; and ${complaints.length - SHOWN_NODES} nodes more` : '';
  const message = `${complaints.slice(0, SHOWN_NODES).join('; ')}${more}`;
  return { type, status: 'False', reason: 'NodesDoNotForward', message };
};
