import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { annotations } from '@unbounded/crds';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { metricsOn } from '../../apps/agent-state.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { allHealthy, setProbing } from '../outages.ts';
import { withoutApiServer } from '../restarts.ts';
import { type FlowReport, podOn, startFlow } from '../scenario.ts';

/** A machine that has no time: nobody is taken for a gateway that does not answer, or does not forward. */

const BUSY_PROCESSES = 6;
const NODES = 300;
const AT_A_TIME = 10;
const MINUTES = 5;
const API_AWAY_MS = 60_000;

const layout = layoutOf({ gateways: 2, workers: 1 });

beforeAll(async () => {
  await down();
  await up(layout);
  await setProbing(layout, 100, 3);
  await allHealthy(layout, 60_000);
}, 300_000);
afterAll(down, 60_000);

/** Nodes of site 1 that have a key and nothing else behind them. */
const visitors = (first: number): string =>
  Array.from({ length: AT_A_TIME }, (_, index) => first + index)
    .map((number) =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: {
          name: `visitor-${number}`,
          annotations: { [annotations.wireGuardPublicKey]: publicKeyOf(generatePrivateKey()) },
        },
        status: { addresses: [{ type: 'InternalIP', address: `10.1.0.${100 + (number % 100)}` }] },
      }),
    )
    .join('\n');

const comeAndGo = async (): Promise<void> => {
  for (let first = 0; first < NODES; first += AT_A_TIME) {
    await kubectl(layout, ['apply', '--server-side', '-f', '-'], visitors(first));
    await kubectl(
      layout,
      ['apply', '--server-side', '--force-conflicts', '--subresource=status', '-f', '-'],
      visitors(first),
    );
    if (first > 0) {
      const names = Array.from({ length: AT_A_TIME }, (_, index) => `visitor-${first - AT_A_TIME + index}`);
      await kubectl(layout, ['delete', 'node', '--wait=false', ...names]);
    }
  }
};

/** Transitions of peers' health, and gateways of which no echo comes back, by node. */
const changes = (): Record<string, string[]> =>
  Object.fromEntries(
    layout.nodes.map(({ name }) => [
      name,
      metricsOn(name)
        .split('\n')
        .filter((line) =>
          /^unbounded_health_transitions_total\{.*to="(Unhealthy|Recovering)"|returned="false"/.test(line),
        ),
    ]),
  );

test(
  'busy processes, nodes that come and go, an API server that is away: nothing is lost, and no gateway given up',
  { timeout: (MINUTES + 20) * 60_000 },
  async () => {
    const before = changes();
    let report: FlowReport;
    const busy = Array.from({ length: BUSY_PROCESSES }, () => spawn('sh', ['-c', 'while :; do :; done']));
    try {
      // Until all is over, not for a fixed time: how long 300 nodes take depends on who else is busy.
      const flow = await startFlow(await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1'), 100);
      const began = performance.now();
      const passedMs = (): number => performance.now() - began;
      await comeAndGo();
      console.log(`${NODES} nodes came in ${Math.round(passedMs() / 1000)} s`);
      await withoutApiServer(layout, () => delay(API_AWAY_MS));
      await delay(Math.max(0, MINUTES * 60_000 - passedMs()));
      report = await flow.end();
      console.log(`${report.sent} sent, ${report.lost} lost, longest gap ${report.largestGapMillis.toFixed(0)} ms`);
    } finally {
      for (const one of busy) one.kill('SIGKILL');
    }
    expect(changes()).toEqual(before);
    expect(report.lost).toBe(0);
  },
);
