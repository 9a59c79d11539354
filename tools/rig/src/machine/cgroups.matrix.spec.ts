import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeNodeCgroup, realtimeOfNodeUs, removeCgroups } from './cgroups.ts';

afterEach(removeCgroups);

const processorGroup = (files: readonly string[]): string =>
  dirname(files.find((file) => file.includes('/cpu/')) ?? files[0]!);

/** Version 1 with RT_GROUP_SCHED; elsewhere groups need no time of their own, and have no such file. */
const HAS_REALTIME = existsSync('/sys/fs/cgroup/cpu/cpu.rt_runtime_us');

const realtimeFile = (group: string): string => join(group, 'cpu.rt_runtime_us');

const setRealtime = (group: string, runtimeUs: number): void => {
  if (HAS_REALTIME) writeFileSync(realtimeFile(group), String(runtimeUs));
};

const realtimeUs = (group: string): number | undefined =>
  HAS_REALTIME ? Number(readFileSync(realtimeFile(group), 'utf8')) : undefined;

/** Of a group that has one. */
const limit = (runtimeUs: number): number | undefined => (HAS_REALTIME ? runtimeUs : undefined);

test('a lab that is brought up as soon as another one is down gets its real time', async () => {
  for (let round = 0; round < 20; round++) {
    const files = makeNodeCgroup('cgroups-spec', 1);
    expect(files.map(existsSync)).not.toContain(false);
    expect(realtimeUs(processorGroup(files))).toBe(limit(realtimeOfNodeUs(1)));
    await removeCgroups();
    expect(files.map((file) => existsSync(dirname(file)))).not.toContain(true);
  }
});

describe('beside another lab that has the real time', () => {
  let other: string;
  let sleeper: ChildProcess | undefined;
  beforeEach(async () => {
    other = `${dirname(processorGroup(makeNodeCgroup('cgroups-spec', 1)))}-other`;
    await removeCgroups();
    mkdirSync(join(other, 'node'), { recursive: true });
    for (const group of [other, join(other, 'node')]) setRealtime(group, 900_000);
  });
  afterEach(async () => {
    if (sleeper?.kill('SIGKILL')) await once(sleeper, 'exit');
    sleeper = undefined;
    for (const group of [join(other, 'node'), other]) {
      setRealtime(group, 0);
      rmdirSync(group);
    }
  });

  test('nodes run without', () => {
    sleeper = spawn('sleep', ['60']);
    writeFileSync(join(other, 'node/cgroup.procs'), String(sleeper.pid));
    const files = makeNodeCgroup('cgroups-spec', 1);
    expect(files.map(existsSync)).not.toContain(false);
    expect(realtimeUs(processorGroup(files))).toBe(limit(0));
    expect(realtimeUs(join(other, 'node'))).toBe(limit(900_000));
  });

  test('nodes have it if nothing of the other lab runs any more', () => {
    const group = processorGroup(makeNodeCgroup('cgroups-spec', 1));
    expect(realtimeUs(group)).toBe(limit(realtimeOfNodeUs(1)));
  });
});
