import { setTimeout as delay } from 'node:timers/promises';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';

/** Whether any object says that something is not as it should be. */

interface Statement {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface Stated {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly status?: { readonly conditions?: readonly Statement[] };
}

const KINDS = 'nodes,sites,sitepeerings,gatewaypools,gatewaypoolnodes,gatewaypoolpeerings,sitegatewaypoolassignments';
/** What a Node's conditions should be; those of kubelet about the machine (pressure) are not about the network. */
const NODE_CONDITIONS: Readonly<Record<string, string>> = {
  Ready: 'True',
  NetworkUnavailable: 'False',
  UnboundedNetworkDegraded: 'False',
};
/** A gateway's agent writes every 13 s, and gateway-health looks every 10 s at who has written. */
const DEADLINE_MS = 25_000;

/** On our own kinds every condition is True when all is well. */
const isBad = (kind: string, { type, status }: Statement): boolean => {
  const wanted = kind === 'Node' ? NODE_CONDITIONS[type] : 'True';
  return wanted !== undefined && status !== wanted;
};

/** What is not as it should be, a line each. `expected`: a reason that the lab's options bring about. */
export const badConditions = (objects: readonly Stated[], expected?: string): string[] =>
  objects.flatMap(({ kind, metadata, status }) =>
    (status?.conditions ?? [])
      .filter((statement) => isBad(kind, statement) && statement.reason !== expected)
      .map(({ type, status: is, reason, message }) => `${kind} ${metadata.name}: ${type}=${is} ${reason}: ${message}`),
  );

const read = async (layout: LabLayout): Promise<Stated[]> =>
  (JSON.parse(await kubectl(layout, ['get', KINDS, '-o', 'json'])) as { items: Stated[] }).items;

export interface ConditionsSeen {
  readonly objects: number;
  readonly bad: readonly string[];
  /** Tunnel protocols that every node says it can do. */
  readonly able: ReadonlySet<string>;
}

/** Looks until all is well, 25 s at most. */
export const lookAtConditions = async (layout: LabLayout): Promise<ConditionsSeen> => {
  for (const end = Date.now() + DEADLINE_MS; ; await delay(500)) {
    const objects = await read(layout);
    const said = objects
      .filter(({ kind }) => kind === 'Node')
      .map(({ metadata }) => metadata.annotations?.['net.unbounded-cloud.io/tunnel-protocols']?.split(',') ?? []);
    const able = new Set(said[0]?.filter((protocol) => said.every((own) => own.includes(protocol))));
    const { protocol } = layout.options;
    // A protocol that was asked for and that this kernel lacks degrades the nodes, and should.
    const isLacking = protocol !== 'Auto' && protocol !== 'None' && !able.has(protocol);
    const bad = badConditions(objects, isLacking ? 'ProtocolUnsupported' : undefined);
    if (bad.length === 0 || Date.now() > end) return { objects: objects.length, bad, able };
  }
};
