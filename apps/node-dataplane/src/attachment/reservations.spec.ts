import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { releaseOfFormerBoot } from './reservations.ts';

let root: string;
let said: string[];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'reservations-'));
  said = [];
  mkdirSync(join(root, 'networks'));
  for (const name of ['192.0.2.5', '2001:db8::5', 'last_reserved_ip.0', 'lock', '192.0.2', 'notes'])
    writeFileSync(join(root, 'networks', name), '');
});
afterEach(() => rmSync(root, { recursive: true }));

const OTHERS = ['192.0.2', 'last_reserved_ip.0', 'lock', 'notes'];
const ALL = ['192.0.2.5', '2001:db8::5', ...OTHERS].sort();
const left = (): string[] => readdirSync(join(root, 'networks')).sort();
const release = async (over: Partial<Parameters<typeof releaseOfFormerBoot>[0]> = {}): Promise<void> =>
  releaseOfFormerBoot({
    folder: join(root, 'networks'),
    list: join(root, 'list'),
    isUnused: async () => true,
    logger: createLogger({ name: 'test', destination: { write: (line) => void said.push(line) } }),
    ...over,
  });

test('before the first list of a boot addresses are free, and nothing else goes', async () => {
  await release();
  expect(left()).toEqual(OTHERS);
  expect(said).toEqual([expect.stringContaining('"addresses":2')]);
});

test('with a list of this boot, or a pod, all stay', async () => {
  await release({ isUnused: async () => false });
  writeFileSync(join(root, 'list'), '');
  await release();
  expect([left(), said]).toEqual([ALL, []]);
});

test('a folder that is not there is nothing to say', async () => {
  await release({ folder: join(root, 'absent') });
  expect(said).toEqual([]);
});

test('what cannot be known or removed stays, and is said', async () => {
  await release({ isUnused: async () => Promise.reject(new Error('no netlink')) });
  rmSync(join(root, 'networks/192.0.2.5'));
  mkdirSync(join(root, 'networks/192.0.2.5'));
  await release();
  expect(left()).toEqual(ALL);
  expect(said).toEqual([expect.stringContaining('no netlink'), expect.stringContaining('192.0.2.5')]);
});
