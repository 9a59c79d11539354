import { setTimeout as delay } from 'node:timers/promises';
import type { LabLayout } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { runProbe } from '../../checks/probe.ts';
import { podsOf, probeCommand } from './pods.ts';

/** Whether every way is proven: a gateway carries nothing before its probes have been answered. */

const SMALLEST_MTU = '576';
const DEADLINE_MS = 60_000;
const POLL_MS = 500;

/** Pods that do not answer a ping of this one. */
const silentFor = async (from: Pod, others: readonly Pod[]): Promise<Pod[]> => {
  const targets = others.flatMap(({ name, ips }) =>
    ips.map((address) => ({ name, address, port: 0, checks: ['icmp'] })),
  );
  const results = JSON.parse(await runProbe(probeCommand(from), ['matrix', SMALLEST_MTU], JSON.stringify(targets))) as {
    name: string;
    check: string;
    ok: boolean;
  }[];
  return others.filter(({ name }) => results.some((result) => result.name === name && !result.ok));
};

/** Waits until pods of all nodes answer each other, or a minute: what does not come by then is for verify to tell. */
export const waitForPaths = async (layout: LabLayout): Promise<void> => {
  const pods = podsOf(layout);
  const firsts = pods.filter(({ node }, index) => pods.findIndex((pod) => pod.node === node) === index);
  for (const end = Date.now() + DEADLINE_MS; ; await delay(POLL_MS)) {
    const silent = await Promise.all(
      firsts.map((from) =>
        silentFor(
          from,
          firsts.filter((pod) => pod !== from),
        ),
      ),
    );
    if (silent.every((those) => those.length === 0) || Date.now() > end) return;
  }
};
