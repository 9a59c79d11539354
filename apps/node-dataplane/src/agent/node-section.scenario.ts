/**
 * An agent whose connectivity hangs: what it repairs all the same. In namespaces of its own (node-section.kernel.spec.ts), with
 * the data path as argument; prints what it saw as JSON.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { STATE_FOLDER } from '@unbounded/config/ownership';
import type { HostServices } from '@unbounded/host';
import type { AgentConfig } from '../agent.config.ts';
import type { SectionType } from '../section.port.ts';
import type { AgentReport } from '../world/reporter.port.ts';
import { addPod, makeNode, NotSo, OBJECTS, run, startAgent, until, writeObjects } from './agent-node.testdata.ts';
import { sectionsOf } from './sections.ts';

export interface Report {
  /** Milliseconds until the table of the guard was back with the pod in it. */
  readonly repairedMs: number;
  /** Reasons of problems while a file cannot be written, and its content once it can be. */
  readonly unwritable: readonly string[];
  readonly written: boolean;
}

let isHanging = false;

/** Its passes hang from then on. */
const hanging = (type: SectionType): SectionType => ({
  ...type,
  async open(context) {
    const section = await type.open(context);
    const pass = async () => {
      const done = await section.pass();
      if (isHanging) await new Promise(() => undefined);
      return done;
    };
    return {
      ...section,
      get isReady() {
        return section.isReady ?? true;
      },
      pass,
      stop: () => section.stop(),
    };
  },
});
const sections = (config: AgentConfig, services: HostServices) => sectionsOf(config, services).map(hanging);

let last: AgentReport | undefined;
const reporter = { report: async (report: AgentReport) => void (last = report) };

const table = (): string => {
  try {
    return run('nft', 'list', 'table', 'bridge', 'unbounded_pods');
  } catch {
    return '';
  }
};
const MAC = '02:00:00:00:00:09';

const main = async (): Promise<Report> => {
  makeNode();
  writeObjects();
  await startAgent(process.argv[2]!, { flags: ['--manifests-dir', OBJECTS], sections, overrides: { reporter } });
  isHanging = true;
  await new Promise((resolve) => setTimeout(resolve, 6000)); // longer than from pass to pass
  await addPod();
  await until('the pod is guarded', () => table().includes(MAC));
  const startMs = performance.now();
  run('nft', 'delete', 'table', 'bridge', 'unbounded_pods');
  await until('the guard is there again', () => table().includes(MAC));
  const repairedMs = performance.now() - startMs;

  const blocked = join(STATE_FOLDER, 'pods.json.new');
  mkdirSync(blocked);
  await addPod({ id: 'c2', name: 'second' });
  const reasons = () => last!.problems.map(({ reason }) => reason);
  await until('it says that it cannot write', () => reasons().includes('StateNotWritable'));
  const unwritable = reasons().filter((reason) => reason === 'StateNotWritable');
  rmSync(blocked, { recursive: true });
  const isWritten = () => readFileSync(join(STATE_FOLDER, 'pods.json'), 'utf8').includes('"second"');
  await until('it is written', () => isWritten() && !reasons().includes('StateNotWritable'));
  return { repairedMs, unwritable, written: isWritten() };
};

try {
  process.stdout.write(`\n${JSON.stringify(await main())}\n`);
  process.exit(0);
} catch (error) {
  if (error instanceof NotSo) {
    process.stdout.write(`\n${JSON.stringify({ notSo: error.message })}\n`);
    process.exit(0);
  }
  console.error(error, last);
  process.exit(1);
}
