import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AGENT_V8_OPTIONS, nodeCommand, REALTIME_V8_OPTION, V8_OPTIONS } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/** Every start of Node has the options of V8 without which threads that come and go end a process: libs/config/src/node-command.ts. */

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const [node, ...options] = nodeCommand;
const underscored = (option: string): string => option.replaceAll('-', '_');

test('the pinned Node knows the options: an unknown one would keep every program from starting', () => {
  const known = underscored(execFileSync(node, ['--v8-options'], { encoding: 'utf8' }));
  for (const option of AGENT_V8_OPTIONS)
    expect(known, option).toContain(underscored(`--${option.replace(/^--(no-)?/, '')} (`));
});

/** What a thread sees of the options, and pages of its process that have a protection key (proc_pid_smaps(5)). */
const READ_BACK = `
const keyed = require('node:fs').readFileSync('/proc/self/smaps', 'utf8').match(/^ProtectionKey: *[1-9].*/gm) ?? [];
const options = process.execArgv.filter((option) => ${JSON.stringify(V8_OPTIONS)}.includes(option));
require('node:worker_threads').parentPort.postMessage(JSON.stringify({ options, keyed }));`;
const seen = { options: [...V8_OPTIONS], keyed: [] };

test('a thread of a program that nodeCommand or tools/node starts has them, and no page with a protection key', () => {
  const thread = `new (require('node:worker_threads').Worker)(${JSON.stringify(READ_BACK)}, { eval: true }).on('message', console.log)`;
  const readBack = (program: string, ...before: string[]): unknown =>
    JSON.parse(execFileSync(program, [...before, '-e', thread], { encoding: 'utf8' }));
  expect(readBack(node, ...options)).toEqual(seen);
  expect(readBack(join(root, 'tools/node'))).toEqual(seen);
});

test('a thread of a test has them', async () => {
  const [message] = (await once(new Worker(READ_BACK, { eval: true }), 'message')) as [string];
  expect(JSON.parse(message)).toEqual(seen);
});

test('no program starts another Node by its bare path', () => {
  const sources = files('apps/**/*.ts', 'libs/**/*.ts', 'tools/**/*.ts').filter(
    (file) => !file.includes('tools/repo/'),
  );
  expect(sources.filter((file) => read(file).includes('process.execPath'))).toEqual([
    'libs/config/src/node-command.ts',
  ]);
});

test('the image, the chart, the unit of systemd and tools/node give them', () => {
  const started = files(
    'deploy/**/*.yaml',
    'deploy/**/*.tpl',
    'apps/*/systemd/*',
    'tools/node',
    'tools/oci/src/unbounded-image.ts',
  ).flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => /(command|entrypoint|ExecStart|exec env).*("\$node"|\/usr\/bin\/node)/.test(line))
      .map((line) => ({
        file,
        line,
        has: V8_OPTIONS.every((option) => line.includes(option)) || line.includes('...V8_OPTIONS'),
      })),
  );
  expect(new Set(started.map(({ file }) => file)).size).toBe(4);
  expect(started.filter(({ has }) => !has)).toEqual([]);
});

test("the agent's container collects garbage on the thread whose it is; nothing else needs that", () => {
  const starts = files('deploy/**/*.yaml').flatMap((file) =>
    read(file)
      .split('\n')
      .filter((line) => line.includes(REALTIME_V8_OPTION)),
  );
  expect(starts.map((line) => line.trim())).toEqual([
    `command: [/usr/bin/agent-start, /usr/bin/node, ${AGENT_V8_OPTIONS.join(', ')}]`,
  ]);
});
