import { datagram } from '@unbounded/testing/packets';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LabLayout } from '../../layout/layout.ts';
import { parsePcap } from '../pcap.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { captureInPod, podOn, startFlow } from '../scenario.ts';
import { type Attempt, table, type Tried, tryAll } from './attempts.ts';

/** Attempts beside flows of others: what they came to, what the flows lost, and what of it arrived at victims. */

/** To which everything forged inside of tunnels goes: a capture at the victims sees whether any arrived. */
export const MARK_PORT = 7777;

/** A datagram that must not arrive, in the name of its source. */
export const forged = (source: string, destination: string) =>
  datagram({ source, destination }, [MARK_PORT, MARK_PORT], new TextEncoder().encode('forged'));

export interface Beside {
  readonly layout: LabLayout;
  /** Nodes whose pods send to each other. */
  readonly flows: readonly (readonly [from: string, to: string])[];
  /** Packets of each flow; absent: 1,000. */
  readonly perSecond?: number;
  /** Where a node's pod sends from, and is found; absent: by its address in the cluster. */
  readonly endOn?: (node: string) => Promise<{ readonly pod: Pod; readonly ip: string }>;
  /** Pods at which nothing forged may arrive. */
  readonly victims: readonly Pod[];
  /** Of the victims; absent: eth0. */
  readonly device?: string;
  /** For captures. */
  readonly folder: string;
}

export interface Outcome {
  readonly tried: readonly Tried[];
  readonly lost: readonly string[];
  readonly arrived: readonly string[];
}

export const whileFlowing = async (
  attempts: readonly Attempt[],
  { layout, flows, victims, folder, device, endOn, perSecond }: Beside,
): Promise<Outcome> => {
  const files = victims.map((pod) => [pod, join(folder, `${pod.name}.pcap`)] as const);
  const captures = await Promise.all(files.map(([pod, file]) => captureInPod(pod, file, device)));
  const end = endOn ?? (async (node: string) => podOn(layout, node).then((pod) => ({ pod, ip: pod.ip })));
  const running = await Promise.all(
    flows.map(async ([from, to]) => ({
      name: `${from} - ${to}`,
      flow: await startFlow((await end(from)).pod, await end(to), perSecond),
    })),
  );
  const tried = await tryAll(attempts);
  const reports = await Promise.all(running.map(async ({ name, flow }) => ({ name, ...(await flow.end()) })));
  for (const stop of captures) await stop();
  console.log(reports.map(({ name, sent, lost }) => `${name}: ${lost} of ${sent} lost`).join('\n'));
  return {
    tried,
    lost: reports
      .filter(({ lost }) => lost > 0)
      .map(({ name, lost, sent, losses }) => `${name}: ${lost} of ${sent}, ${JSON.stringify(losses)}`),
    arrived: files.flatMap(([pod, file]) =>
      parsePcap(readFileSync(file))
        .filter(({ destinationPort }) => destinationPort === MARK_PORT)
        .map(({ source }) => `${pod.name} received "forged" from ${source}`),
    ),
  };
};

export const IN_VAIN = { succeeded: [], lost: [], arrived: [] };

/** What the attacker came to. */
export const judged = ({ tried, lost, arrived }: Outcome) => {
  console.log(table(tried));
  const succeeded = tried
    .filter(({ failure }) => failure !== undefined)
    .map(({ name, failure }) => `${name}: ${failure}`);
  return { succeeded, lost, arrived };
};
