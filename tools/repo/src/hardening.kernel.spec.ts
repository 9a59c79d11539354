import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/** What readelf says of our C as it is shipped, and (for what stripping takes away) of the same code with its symbols. */

const built: readonly (readonly [name: string, build: string, kind: 'addon' | 'program'])[] = [
  ['netlink.node', 'libs/netlink/native/build.sh', 'addon'],
  ['libbpf.node', 'libs/libbpf-ts/native/build.sh', 'addon'],
  ['unbounded-cni', 'apps/cni/build.sh', 'program'],
  ['agent-start', 'deploy/image/build.sh', 'program'],
  ['pod-start', 'deploy/image/build.sh', 'program'],
];

const folder = mkdtempSync(join(tmpdir(), 'hardening-'));
const variants = ['release', 'symbols'] as const;
const fileOf = (name: string, variant: (typeof variants)[number]): string => join(folder, variant, name);
const readelf = (file: string, ...flags: string[]): string =>
  execFileSync('readelf', ['--wide', ...flags, file], { encoding: 'utf8' });

beforeAll(() => {
  for (const variant of variants) {
    for (const [name, build] of built) {
      const env = { ...process.env, UNBOUNDED_NATIVE: variant };
      execFileSync(join(root, build), [fileOf(name, variant), name], { stdio: 'inherit', env });
    }
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

test('every C file that is shipped is in a build of the table; others are of tests', () => {
  const scripts = built.map(([, build]) => readFileSync(join(root, build), 'utf8')).join('\n');
  const scenarios = files('*.scenario.ts', '*.spec.ts').map((file) => readFileSync(join(root, file), 'utf8'));
  const sources = files('apps/**/*.c', 'libs/**/*.c', 'deploy/**/*.c').filter((file) => !file.endsWith('.fuzz.c'));
  const names = sources.map((file) => basename(file));
  expect(names.length).toBeGreaterThan(built.length);
  expect(names.filter((name) => !scripts.includes(name) && !scenarios.some((text) => text.includes(name)))).toEqual([]);
});

test('no build has flags of its own instead of the common ones', () => {
  for (const [, build] of built) {
    const script = readFileSync(join(root, build), 'utf8');
    expect(script, build).toContain('tools/c-flags.sh');
    expect(script, build).not.toMatch(/-W(all|extra|error)|-fstack|-D_FORTIFY|-z,/);
  }
});

describe.each(built)('%s', (name, _build, kind) => {
  const release = fileOf(name, 'release');
  const segment = (type: string): string =>
    readelf(release, '--segments')
      .split('\n')
      .find((line) => line.trim().startsWith(type)) ?? '';

  test('is at a random address, and all of its relocations are done and read-only before it runs', () => {
    expect(readelf(release, '--file-header')).toMatch(/Type:\s+DYN/);
    const dynamic = readelf(release, '--dynamic');
    expect(dynamic).toMatch(/\(FLAGS\)\s+BIND_NOW/);
    if (kind === 'program') expect(dynamic).toMatch(/\(FLAGS_1\)\s+Flags: NOW PIE/);
    expect(dynamic).not.toContain('TEXTREL');
    expect(segment('GNU_RELRO')).toMatch(/ R +0x/);
  });

  test('has no memory that can be written and executed, the stack included', () => {
    expect(segment('GNU_STACK')).toMatch(/ RW +0x/);
    const loaded = readelf(release, '--segments').match(/^ +LOAD .*$/gm) ?? [];
    expect(loaded.length).toBeGreaterThan(1);
    expect(loaded.filter((line) => / RWE | WE /.test(line))).toEqual([]);
  });

  test('checks its stack frames', () => {
    // Of a program its own main, since musl's functions check theirs whatever our flags are; an addon has no other code.
    const only = kind === 'program' ? ['--disassemble=main'] : ['--disassemble'];
    const code = execFileSync('objdump', [...only, fileOf(name, 'symbols')], { encoding: 'utf8', maxBuffer: 64 << 20 });
    expect(code).toMatch(/\b(call|bl)\s.*<__stack_chk_fail(@plt)?>/);
  });

  test('is stripped, and a static program asks for no library', () => {
    expect(readelf(release, '--sections')).not.toContain('.symtab');
    if (kind === 'program') expect(readelf(release, '--dynamic', '--segments')).not.toMatch(/NEEDED|INTERP/);
  });
});

// musl has no checked variants of its functions.
test.each(built.filter(([, , kind]) => kind === 'addon'))(
  '%s uses the functions of the C library that check sizes',
  (name) => {
    expect(readelf(fileOf(name, 'release'), '--dyn-syms')).toMatch(/__\w+_chk@/);
  },
);
