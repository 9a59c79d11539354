import { afterAll, beforeAll, expect, test } from 'vitest';
import { cleanUpByChart, uninstallChart } from '../../apps/chart.ts';
import { NAMESPACE } from '../../apps/tokens.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { down } from '../../substrate/down.ts';
import { probePods } from '../../substrate/probes.ts';
import { up } from '../../substrate/up.ts';
import { tryInPod } from '../scenario.ts';
import { leftOnNode, namesAtServer, recordsOf } from './lab-devices.ts';

/** The product is taken away as docs/operations.md says while pods are devices of a tailnet: all programs as pods, by the chart. */

const layout = layoutOf({ workers: 1, tailnet: true, agents: 'pods' });
const LAPTOP = 'laptop';
const JOB = 'tailnet-registrar-uninstall';

beforeAll(async () => {
  await down();
  await up(layout);
}, 600_000);
afterAll(down, 60_000);

test(
  'helm uninstall removes every device by a pod of its own, and nothing of any is left',
  { timeout: 400_000 },
  async () => {
    const pods = await probePods(layout);
    expect(namesAtServer(layout).length).toBeGreaterThan(pods.length / 2);
    expect(leftOnNode('s1-w1')).not.toEqual([]);
    await cleanUpByChart(layout);
    await uninstallChart(layout);
    const events = [
      'get',
      'events',
      '-n',
      NAMESPACE,
      '-o',
      'jsonpath={range .items[*]}{.involvedObject.name} {.reason}{"\\n"}{end}',
    ];
    expect(await kubectl(layout, events)).toContain(`${JOB} Completed`);
    expect(await recordsOf(layout)).toEqual([]);
    expect(namesAtServer(layout)).toEqual([LAPTOP]);
    for (const { name } of layout.nodes) expect(leftOnNode(name), name).toEqual([]);
    for (const pod of pods) expect(tryInPod(pod, 'ip', '-o', 'link', 'show', 'dev', 'ts0'), pod.name).toBeUndefined();
  },
);
