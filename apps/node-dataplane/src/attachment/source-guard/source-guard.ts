import type { RouteSocket } from '@unbounded/netlink';
import {
  elementsOf,
  findDrift,
  type Nftables,
  NftablesError,
  type ObservedTable,
  type TableSpec,
} from '@unbounded/nftables';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import { createQueue } from '../../kernel/in-turn.ts';
import type { PodAttachment, PodRegistry } from '../pods.ts';
import { createBridgePorts } from './bridge-ports.ts';
import { createDropReader } from './drops.ts';
import { closePort } from './port-sysctls.ts';
import { planGuardTable, portSets } from './guard-table.plan.ts';
import { type PodPort, podPort, PodPortError } from './pod-port.ts';

/** Keeps the kernel's table of what pods may send in step with the pods that are attached. */

export interface SourceGuard {
  /** Registers the pod, once its port is guarded. @throws PodPortError, NftablesError: nothing is registered then */
  attach(pod: PodAttachment): Promise<void>;
  /** Unknown ones are fine: DEL may come twice. */
  detach(containerId: string, interfaceName: string): Promise<void>;
  /** What the kernel lacks of a pod's guard, in words; undefined: nothing. */
  check(containerId: string, interfaceName: string): Promise<string | undefined>;
  /** Writes the table when it is not as the attached pods need it, and counts what was dropped. */
  ensure(): Promise<readonly Problem[]>;
  /** What pods tried since the last call, a sentence each. */
  takeNotes(): string[];
}

export interface SourceGuardParts {
  readonly net: RouteSocket;
  /** Its own, so that a pod does not wait for a list that a pass reads. */
  readonly nft: Nftables;
  readonly pods: PodRegistry;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

const TABLE = planGuardTable([]);
/** What a kernel without the bridge family answers to a chain of it. */
const UNSUPPORTED = new Set(['ENOENT', 'EOPNOTSUPP', 'EAFNOSUPPORT', 'EPROTONOSUPPORT']);
/** A table with one empty chain: whether the kernel can do this at all. */
const PROBE: TableSpec = {
  family: 'bridge',
  name: `${TABLE.name}_probe`,
  chains: [{ ...TABLE.chains[0]!, rules: [] }],
};

const isSupported = async (nft: Nftables): Promise<boolean> => {
  try {
    await nft.replaceTable(PROBE);
    await nft.deleteTable(PROBE.family, PROBE.name);
    return true;
  } catch (error) {
    return !(error instanceof NftablesError && UNSUPPORTED.has(error.code));
  }
};

/** Names of the sets in which an element of the port is missing. */
const missingSets = (table: ObservedTable | undefined, port: PodPort): string[] =>
  portSets(port).flatMap((wanted) => {
    const found = new Set(table?.sets.find(({ name }) => name === wanted.name)?.elements.map(({ key }) => key.join()));
    return elementsOf(wanted).every(({ key }) => found.has(key.join())) ? [] : [wanted.name];
  });

const closePorts = (pods: readonly PodAttachment[]): Problem[] => {
  try {
    for (const { hostVeth } of pods) if (hostVeth !== undefined) closePort(hostVeth);
    return [];
  } catch (error) {
    return [{ reason: 'PodPortOpen', message: `settings of a pod's port on the node: ${(error as Error).message}` }];
  }
};

/** The nftables table: written whole where it differs, and an element at a time where a pod comes. */
const createGuardTable = ({ net, nft, pods, logger, metrics }: SourceGuardParts) => {
  const bridgePorts = createBridgePorts(net, pods);
  const drops = createDropReader(metrics);
  const guarded = metrics.gauge({
    name: 'unbounded_source_validated_pods',
    help: 'Pods under source validation: frames with another MAC or source address are dropped.',
  });
  /** @returns what an operator is to know. @throws NftablesError: the table could not be written */
  const write = async (): Promise<readonly Problem[]> => {
    const { ports, problems } = await bridgePorts.find();
    const podOf = new Map(
      [...ports].map(([pod, { interfaceIndex }]) => [interfaceIndex, `${pod.namespace}/${pod.name}`]),
    );
    const observed = await nft.readTable(TABLE.family, TABLE.name);
    if (observed) drops.read(observed, (index) => podOf.get(index));
    const wanted = planGuardTable([...ports.values()]);
    const drift = ports.size === 0 && !observed ? undefined : findDrift(wanted, observed);
    if (drift !== undefined) {
      guarded.set(0);
      await nft.replaceTable(wanted);
      drops.reset();
      logger.info({ table: TABLE.name, pods: ports.size, drift }, 'wrote the nftables table of source validation');
    }
    guarded.set(ports.size);
    return [...problems, ...closePorts([...ports.keys()])];
  };

  /** A node whose kernel cannot do it keeps its pods: it says so instead. */
  const failed = async (error: Error): Promise<Problem> =>
    (await isSupported(nft))
      ? {
          reason: 'SourceGuardFailed',
          message: `nftables table ${TABLE.name}: ${error.message}; new pods are refused until it is written`,
        }
      : {
          reason: 'SourceGuardUnsupported',
          message: `the kernel has no nftables of the bridge family (${error.message}): pods can send with any MAC and address; load or build it with CONFIG_NF_TABLES_BRIDGE`,
        };

  const admit = async (port: PodPort): Promise<void> => {
    try {
      await nft.changeElements(TABLE, { add: portSets(port) });
    } catch (error) {
      // The first pod, or somebody took the table away.
      if (!(error instanceof NftablesError && error.code === 'ENOENT')) throw error;
      await write().catch(async (cause: Error) => {
        if ((await failed(cause)).reason !== 'SourceGuardUnsupported') throw cause;
      });
    }
  };

  return { write, failed, admit, takeNotes: () => drops.takeNotes() };
};

export const createSourceGuard = (parts: SourceGuardParts): SourceGuard => {
  const { net, nft, pods, logger } = parts;
  const table = createGuardTable(parts);
  const inTurn = createQueue();
  const find = (containerId: string, interfaceName: string): PodAttachment | undefined =>
    pods.list().find((pod) => pod.containerId === containerId && pod.interface === interfaceName);

  const portOf = async (pod: PodAttachment): Promise<PodPort | undefined> => {
    const hostEnd = pod.hostVeth === undefined ? undefined : await net.links.get(pod.hostVeth);
    return hostEnd && podPort(net, pod, hostEnd);
  };

  return {
    attach: (pod) =>
      inTurn(async () => {
        const port = await portOf(pod);
        if (!port) throw new PodPortError(`its interface on the node (${pod.hostVeth ?? 'no veth'}) is not there`);
        pods.add({ ...pod, mac: port.mac });
        try {
          closePort(pod.hostVeth!);
          await table.admit(port);
        } catch (error) {
          pods.remove(pod.containerId, pod.interface);
          throw error;
        }
      }),
    detach: (containerId, interfaceName) =>
      inTurn(async () => {
        const pod = find(containerId, interfaceName);
        if (!pod) return;
        pods.remove(containerId, interfaceName);
        try {
          const port = await portOf(pod);
          if (port) await nft.changeElements(TABLE, { remove: portSets(port) });
        } catch (error) {
          // The pod goes in any case, and the next pass takes its elements away.
          logger.warn({ error: (error as Error).message }, 'cannot remove a pod from the table of source validation');
        }
      }),
    check: (containerId, interfaceName) =>
      inTurn(async () => {
        const pod = find(containerId, interfaceName);
        if (!pod) return 'the pod is not registered';
        const port = await portOf(pod);
        if (!port) return `its interface on the node (${pod.hostVeth ?? 'no veth'}) is not there`;
        const missing = missingSets(await nft.readTable(TABLE.family, TABLE.name), port);
        return missing.length === 0 ? undefined : `sets of nftables table ${TABLE.name} lack it: ${missing.join(', ')}`;
      }),
    ensure: () =>
      inTurn(async () => {
        try {
          return await table.write();
        } catch (error) {
          return [await table.failed(error as Error)];
        }
      }),
    takeNotes: () => table.takeNotes(),
  };
};
