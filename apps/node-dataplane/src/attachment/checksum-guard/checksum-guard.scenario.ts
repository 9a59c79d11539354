import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { REMOTE } from '../source-guard/attempts.testdata.ts';
import {
  canPing,
  makeNetwork,
  makePlainBridge,
  net,
  prepareNode,
  run,
} from '../source-guard/guard-network.testdata.ts';
import { hex, markerOf, receive } from '../source-guard/guard-sending.testdata.ts';
import { checksumPinFolder, createChecksumGuard } from './checksum-guard.ts';
import { COMPLETE, HONEST_LATE, type LateFrame, REWRITES } from './rewrites.testdata.ts';

/**
 * A pod behind the bridge, a node that forwards, and a link out of it whose device fills checksums in by software
 * (checksum-guard.kernel.spec.ts starts this in a network and a mount namespace of its own). Prints JSON.
 */

export interface Report {
  /** Of REWRITES: whether the frame arrived with what its sender wanted. */
  readonly unguarded: readonly boolean[];
  readonly guarded: readonly boolean[];
  /** Whether they arrived, with the guard. */
  readonly honest: readonly boolean[];
  readonly dropped: number;
  readonly checked: readonly number[];
  readonly problems: readonly string[];
  /** After the process that attached it has ended, and after a successor has come. */
  readonly afterClose: readonly boolean[];
  readonly successor: readonly boolean[];
  readonly withoutFunction: { readonly problems: number; readonly checked: number };
}

const [sender, bpffsDir] = [process.argv[2]!, process.argv[3]!];
let kind = 0;

prepareNode();
const network = await makeNetwork(makePlainBridge); // goes with the namespace
run('ethtool', '-K', 'up0', 'tx', 'off');
for (const address of [REMOTE.v4, REMOTE.v6]) await until(`${address} answers`, () => canPing(network.pod, address));

const arrivals = async (
  frames: readonly { readonly line: string; readonly marker: Uint8Array }[],
): Promise<string[]> => {
  const receiver = await receive(['nsenter', `--net=${network.remote.path}`, sender, 'receive', 'eth0']);
  const last = markerOf(++kind, 0xff);
  const input = [...frames.map(({ line }) => line), hex(COMPLETE(last)), ''].join('\n');
  execFileSync('nsenter', [`--net=${network.pod.path}`, sender, 'send', 'eth0'], { input });
  await until('the last frame arrives', () => receiver.seen(hex(last)));
  receiver.stop();
  return frames.map(({ marker }) => receiver.lineWith(hex(marker)));
};

const framesOf = (late: readonly LateFrame[]) => {
  const own = ++kind;
  return late.map(({ make, start, offset }, index) => {
    const marker = markerOf(own, index);
    return { marker, line: `@${start}+${offset} ${hex(make(marker))}` };
  });
};
const tryRewrites = async (): Promise<boolean[]> =>
  (await arrivals(framesOf(REWRITES))).map((frame, index) => {
    const { start, offset, wanted } = REWRITES[index]!;
    return frame.slice((start + offset) * 2, (start + offset) * 2 + 4) === wanted.toString(16).padStart(4, '0');
  });
const tryHonest = async (): Promise<boolean[]> => (await arrivals(framesOf(HONEST_LATE))).map((frame) => frame !== '');

const objectPath = join(import.meta.dirname, '../../../../../bpf/build/unbounded_pods.bpf.o');
const metrics = createMetrics();
const parts = { net, objectPath, pinFolder: checksumPinFolder(bpffsDir), metrics, logger: silentLogger };
const gauge = async (from = metrics): Promise<number> =>
  Number(/^unbounded_pod_checksums_checked (\d)/m.exec(await from.render())?.[1]);

const unguarded = await tryRewrites();
const guard = createChecksumGuard(parts);
const before = await gauge();
const problems = [...(await guard.ensure())];
const guarded = await tryRewrites();
const honest = await tryHonest();
problems.push(...(await guard.ensure()));
const checked = [before, await gauge()];
const dropped = Number(
  /^unbounded_pod_frames_dropped_total\{reason="checksum"\} (\d+)/m.exec(await metrics.render())?.[1],
);
guard.close();
const afterClose = await tryRewrites();
const next = createChecksumGuard({ ...parts, metrics: createMetrics() });
problems.push(...(await next.ensure()));
const successor = await tryRewrites();
next.close();
const oldMetrics = createMetrics();
const old = createChecksumGuard({ ...parts, metrics: oldMetrics, hasFunction: () => false });
const withoutFunction = { problems: (await old.ensure()).length, checked: await gauge(oldMetrics) };

const report: Report = {
  ...{ unguarded, guarded, honest, dropped, checked, afterClose, successor, withoutFunction },
  problems: problems.map(({ message }) => message),
};
console.log(JSON.stringify(report));
net.close();
