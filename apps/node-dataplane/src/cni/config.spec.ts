import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { planFor } from '../testdata.ts';
import { createStateFaults } from '../kernel/state-faults.ts';
import { ensureCniConfig, removeCniConfig } from './config.ts';
import { installCniPlugin } from './install.ts';

let base: string;
let folder: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'cni-'));
  folder = join(base, 'net.d');
});
afterEach(() => rmSync(base, { recursive: true }));
const file = (): string => join(folder, '10-unbounded.conflist');

describe('the CNI configuration', () => {
  test('is a list that begins and ends with our plug-in and gives pods the MTU and the blocks of the plan', () => {
    const plan = planFor('w1');
    expect(ensureCniConfig(folder, plan)).toEqual([]);
    const { plugins } = JSON.parse(readFileSync(file(), 'utf8')) as { plugins: Record<string, unknown>[] };
    expect(plugins.map(({ type }) => type)).toEqual(['unbounded-cni', 'bridge', 'portmap', 'unbounded-cni']);
    expect([plugins[0]!['gate'], plugins[3]!['gate']]).toEqual([true, undefined]);
    expect(plugins[1]).toMatchObject({
      bridge: 'cbr0',
      mtu: plan.mtuBytes,
      ipam: { ranges: [[{ subnet: '100.65.30.0/24' }]] },
    });
    expect(readdirSync(folder)).toEqual(['10-unbounded.conflist']);
  });

  test('is written once, and again when the plan or the file changed', () => {
    ensureCniConfig(folder, planFor('w1'));
    const { ino } = statSync(file());
    ensureCniConfig(folder, planFor('w1'));
    expect(statSync(file()).ino).toBe(ino);
    writeFileSync(file(), '{}');
    ensureCniConfig(folder, planFor('w1'));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveProperty('plugins');
  });

  test.each(['05-cilium.conflist', '99-loopback.conf', 'x.json'])(
    '%s of another plug-in is a problem, and nothing is written',
    (name) => {
      mkdirSync(folder);
      writeFileSync(join(folder, name), '{}');
      expect(ensureCniConfig(folder, planFor('w1'))).toEqual([
        { reason: 'ForeignCNIConfig', message: expect.stringContaining(`${folder} holds ${name}`) },
      ]);
      expect(readdirSync(folder)).toEqual([name]);
    },
  );

  test('is not ours where the Site says so, and waits for blocks', () => {
    expect(ensureCniConfig(folder, { ...planFor('w1'), manageCni: false })).toEqual([]);
    expect(ensureCniConfig(folder, { ...planFor('w1'), podCidrs: [] })).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  test('is removed without those of others', () => {
    ensureCniConfig(folder, planFor('w1'));
    writeFileSync(join(folder, 'x.conf'), '');
    removeCniConfig(folder);
    removeCniConfig(folder);
    expect(readdirSync(folder)).toEqual(['x.conf']);
  });
});

describe('what cannot be read is reported and ends nothing', () => {
  const reasons = (faults: ReturnType<typeof createStateFaults>): string[] =>
    faults.problems().map(({ reason }) => reason);

  test('the configuration', () => {
    const faults = createStateFaults();
    mkdirSync(file(), { recursive: true });
    expect(ensureCniConfig(folder, planFor('w1'), faults)).toEqual([]);
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    rmSync(file(), { recursive: true });
    faults.retry();
    expect([reasons(faults), existsSync(file())]).toEqual([[], true]);
  });

  test('its folder', () => {
    const faults = createStateFaults();
    writeFileSync(folder, 'a file');
    expect(ensureCniConfig(folder, planFor('w1'), faults)).toEqual([]);
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    rmSync(folder);
    ensureCniConfig(folder, planFor('w1'), faults);
    expect([reasons(faults), existsSync(file())]).toEqual([[], true]);
  });

  test('the plug-in, its source and its folder', () => {
    const faults = createStateFaults();
    const [source, target] = [join(base, 'source'), join(folder, 'unbounded-cni')];
    installCniPlugin(source, folder, faults);
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    writeFileSync(source, 'program');
    mkdirSync(target, { recursive: true });
    faults.retry();
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    rmSync(target, { recursive: true });
    faults.retry();
    expect([reasons(faults), readFileSync(target, 'utf8')]).toEqual([[], 'program']);
  });
});
