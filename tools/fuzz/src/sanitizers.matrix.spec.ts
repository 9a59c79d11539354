import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { layerNamed, specsOf } from '@unbounded/suite/layers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root } from './targets.ts';

/**
 * The addons inside Node, compiled with AddressSanitizer and UndefinedBehaviorSanitizer: the tests that use them on a real
 * kernel run again, and neither sanitizer has anything to say.
 */

const folder = mkdtempSync(join(tmpdir(), 'sanitizers-'));
const reports = join(folder, 'reports');
const library = (name: string): string =>
  execFileSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();
const addons = {
  UNBOUNDED_NETLINK_ADDON: ['libs/netlink/native/build.sh', join(folder, 'netlink.node')],
  UNBOUNDED_LIBBPF_ADDON: ['libs/libbpf-ts/native/build.sh', join(folder, 'libbpf.node')],
} as const;

/** Node itself is no sanitized program: its own leaks at the end, and its stack, are not looked at. */
const env: NodeJS.ProcessEnv = {
  ...process.env,
  LD_PRELOAD: `${library('libasan.so')} ${library('libubsan.so')}`,
  ASAN_OPTIONS: `detect_leaks=0:halt_on_error=1:log_path=${reports}`,
  UBSAN_OPTIONS: `print_stacktrace=1:halt_on_error=1:log_path=${reports}`,
  ...Object.fromEntries(Object.entries(addons).map(([name, [, file]]) => [name, file])),
};
const runNode = (...args: string[]) =>
  spawnSync(join(root, 'tools/node'), args, { cwd: root, env, encoding: 'utf8', maxBuffer: 64 << 20 });
const reported = (): string =>
  readdirSync(folder)
    .filter((name) => name.startsWith('reports'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n');

beforeAll(() => {
  for (const [script, file] of Object.values(addons))
    execFileSync(join(root, script), [file], {
      stdio: 'inherit',
      env: { ...process.env, UNBOUNDED_NATIVE: 'sanitized' },
    });
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true }));

test('a mistake is reported, and where these tests look', () => {
  const source = join(folder, 'broken.c');
  // One byte behind what malloc gave.
  writeFileSync(source, '#include <stdlib.h>\nint main(void){volatile char *p = malloc(8); p[8] = 1; return 0;}\n');
  execFileSync('gcc', ['-fsanitize=address', source, '-o', join(folder, 'broken')]);
  const { status } = spawnSync(join(folder, 'broken'), { env });
  expect(status).not.toBe(0);
  expect(reported()).toContain('heap-buffer-overflow');
  for (const name of readdirSync(folder)) if (name.startsWith('reports')) rmSync(join(folder, name));
});

test('Node loads the sanitized addons', () => {
  const code = `
    for (const file of [process.env.UNBOUNDED_NETLINK_ADDON, process.env.UNBOUNDED_LIBBPF_ADDON]) require(file);
    console.log(require('node:fs').readFileSync('/proc/self/maps', 'utf8'));`;
  const { stdout } = runNode('-e', code);
  for (const part of ['libasan', 'libubsan', ...Object.values(addons).map(([, file]) => file)])
    expect(stdout).toContain(part);
  for (const [, file] of Object.values(addons))
    expect(execFileSync('readelf', ['--wide', '--dyn-syms', file], { encoding: 'utf8' })).toContain('__asan_report_');
});

test.each([
  ['kernel', 'libs/netlink/test'],
  ['bpf', 'libs/libbpf-ts'],
  ['bpf', 'bpf'],
  ['kernel', 'bpf'],
])('%s tests of %s find nothing', { timeout: 900_000 }, (project, folder) => {
  const { status, stdout, stderr } = runNode(
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    project,
    '--testTimeout',
    '240000',
    // By name: vitest takes a folder for a part of any path.
    ...specsOf(root, layerNamed(project)).filter((file) => file.startsWith(`${folder}/`)),
  );
  expect(reported() + (/^.*(runtime error|ERROR: AddressSanitizer).*$/m.exec(stderr)?.[0] ?? '')).toBe('');
  expect(status, `${stdout}\n${stderr}`).toBe(0);
  expect(stdout).toMatch(/Tests\s.*\d+ passed/);
});
