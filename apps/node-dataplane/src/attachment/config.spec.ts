import {
  existsSync,
  lstatSync,
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
import { createStateFaults } from '../state/state-faults.ts';
import { type CniConfigFolders, ensureCniConfig, removeCniConfig } from './config.ts';
import { installCniPlugin } from './install.ts';

let base: string;
let folder: string;
let folders: CniConfigFolders;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'cni-'));
  folder = join(base, 'net.d');
  folders = { configurations: folder, volatile: join(base, 'run') };
});
afterEach(() => rmSync(base, { recursive: true }));
const file = (): string => join(folder, '10-unbounded.conflist');

describe('the CNI configuration', () => {
  test('is a list that ends with our plug-in and gives pods the MTU and the blocks of the plan', () => {
    const plan = planFor('w1');
    expect(ensureCniConfig(folders, plan)).toEqual([]);
    const { plugins } = JSON.parse(readFileSync(file(), 'utf8')) as { plugins: Record<string, unknown>[] };
    expect(plugins.map(({ type }) => type)).toEqual(['bridge', 'portmap', 'unbounded-cni']);
    expect(plugins[0]).toMatchObject({
      bridge: 'cbr0',
      mtu: plan.mtuBytes,
      ipam: { ranges: [[{ subnet: '100.65.30.0/24' }]] },
    });
    expect(readdirSync(folder)).toEqual(['10-unbounded.conflist']);
  });

  test('has the runtime pass the annotations of pods to our plug-in', () => {
    ensureCniConfig(folders, planFor('w1'));
    const { plugins } = JSON.parse(readFileSync(file(), 'utf8')) as { plugins: Record<string, unknown>[] };
    expect(plugins.at(-1)).toEqual({
      type: 'unbounded-cni',
      capabilities: { 'io.kubernetes.cri.pod-annotations': true },
    });
  });

  test('keeps the last IPv6 address of a block from pods', () => {
    ensureCniConfig(folders, { ...planFor('w1'), podCidrs: ['fd00:1::/64', 'fd00:2::/127'] });
    const { plugins } = JSON.parse(readFileSync(file(), 'utf8')) as { plugins: { ipam: { ranges: unknown } }[] };
    expect(plugins[0]!.ipam.ranges).toEqual([
      [{ subnet: 'fd00:1::/64', rangeEnd: 'fd00:1::ffff:ffff:ffff:fffe' }],
      [{ subnet: 'fd00:2::/127' }],
    ]);
  });

  test('is written once, and again when the plan or the file changed', () => {
    ensureCniConfig(folders, planFor('w1'));
    const inodes = (): number[] => [lstatSync(file()).ino, statSync(file()).ino];
    const before = inodes();
    ensureCniConfig(folders, planFor('w1'));
    expect(inodes()).toEqual(before);
    writeFileSync(file(), '{}');
    ensureCniConfig(folders, planFor('w1'));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveProperty('plugins');
    expect(lstatSync(file()).ino).not.toBe(before[0]); // who watches the folder sees that there is a new list
  });

  test('leads nowhere after a boot, until it is written again', () => {
    ensureCniConfig(folders, planFor('w1'));
    rmSync(folders.volatile, { recursive: true });
    expect([readdirSync(folder), existsSync(file())]).toEqual([['10-unbounded.conflist'], false]);
    ensureCniConfig(folders, planFor('w1'));
    expect(JSON.parse(readFileSync(file(), 'utf8'))).toHaveProperty('plugins');
  });

  test('takes the place of a file with the same content, which would outlive a boot', () => {
    ensureCniConfig(folders, planFor('w1'));
    const text = readFileSync(file(), 'utf8');
    rmSync(file());
    writeFileSync(file(), text);
    ensureCniConfig(folders, planFor('w1'));
    expect([lstatSync(file()).isSymbolicLink(), readFileSync(file(), 'utf8')]).toEqual([true, text]);
  });

  test.each(['05-cilium.conflist', '99-loopback.conf', 'x.json'])(
    '%s of another plug-in is a problem, and nothing is written',
    (name) => {
      mkdirSync(folder);
      writeFileSync(join(folder, name), '{}');
      expect(ensureCniConfig(folders, planFor('w1'))).toEqual([
        { reason: 'ForeignCNIConfig', message: expect.stringContaining(`${folder} holds ${name}`) },
      ]);
      expect(readdirSync(folder)).toEqual([name]);
    },
  );

  test('is kept as it should be where it is in use, also beside one of another plug-in that came later', () => {
    ensureCniConfig(folders, planFor('w1'));
    writeFileSync(join(folder, '87-podman-bridge.conflist'), '{}');
    const problem = {
      reason: 'ForeignCNIConfig',
      message: expect.stringContaining('87-podman-bridge.conflist beside ours'),
    };
    const moved = { ...planFor('w1'), podCidrs: ['100.65.99.0/24'] };
    expect(ensureCniConfig(folders, moved)).toEqual([problem]);
    expect(readFileSync(file(), 'utf8')).toContain('100.65.99.0/24');
    rmSync(folders.volatile, { recursive: true }); // a boot
    expect(ensureCniConfig(folders, moved)).toEqual([problem]);
    expect(readFileSync(file(), 'utf8')).toContain('100.65.99.0/24');
  });

  test('goes when pods are another plug-in’s and that one’s is there, or when it leads nowhere; until then it stays in use', () => {
    const others = { ...planFor('w1'), manageCni: false };
    ensureCniConfig(folders, planFor('w1'));
    expect(ensureCniConfig(folders, others)).toEqual([]);
    expect(existsSync(file())).toBe(true);
    writeFileSync(join(folder, '20-other.conflist'), '{}');
    expect(ensureCniConfig(folders, others)).toEqual([]);
    expect([readdirSync(folder), readdirSync(folders.volatile)]).toEqual([['20-other.conflist'], []]);
    rmSync(join(folder, '20-other.conflist'));

    ensureCniConfig(folders, planFor('w1'));
    rmSync(folders.volatile, { recursive: true });
    ensureCniConfig(folders, others);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('of our name that is not ours stays where pods are another plug-in’s', () => {
    mkdirSync(folder);
    writeFileSync(file(), 'theirs');
    writeFileSync(join(folder, '20-other.conflist'), '{}');
    ensureCniConfig(folders, { ...planFor('w1'), manageCni: false });
    expect(readFileSync(file(), 'utf8')).toBe('theirs');
  });

  test('is not ours where the Site says so, and waits for blocks', () => {
    expect(ensureCniConfig(folders, { ...planFor('w1'), manageCni: false })).toEqual([]);
    expect(ensureCniConfig(folders, { ...planFor('w1'), podCidrs: [] })).toEqual([]);
    expect(existsSync(folder)).toBe(false);
  });

  test('is removed without those of others', () => {
    ensureCniConfig(folders, planFor('w1'));
    writeFileSync(join(folder, 'x.conf'), '');
    removeCniConfig(folders);
    removeCniConfig(folders);
    expect(readdirSync(folder)).toEqual(['x.conf']);
  });
});

describe('what cannot be read is reported and ends nothing', () => {
  const reasons = (faults: ReturnType<typeof createStateFaults>): string[] =>
    faults.problems().map(({ reason }) => reason);

  test('the configuration', () => {
    const faults = createStateFaults();
    mkdirSync(file(), { recursive: true });
    expect(ensureCniConfig(folders, planFor('w1'), faults)).toEqual([]);
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    rmSync(file(), { recursive: true });
    faults.retry();
    expect([reasons(faults), existsSync(file())]).toEqual([[], true]);
  });

  test('its folder', () => {
    const faults = createStateFaults();
    writeFileSync(folder, 'a file');
    expect(ensureCniConfig(folders, planFor('w1'), faults)).toEqual([]);
    expect(reasons(faults)).toEqual(['StateNotWritable']);
    rmSync(folder);
    ensureCniConfig(folders, planFor('w1'), faults);
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
