import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processesIn } from './machine.ts';
import { rootWith } from './settings.testdata.ts';

test('a process of a container with a network of its own is none of the machine', () => {
  using folder = rootWith({ 'proc/1/comm': 'systemd\n', 'proc/7/comm': 'NetworkManager\n', 'proc/version': 'Linux\n' });
  for (const [pid, network] of [
    ['self', 'net:[1]'],
    ['1', 'net:[1]'],
    ['7', 'net:[2]'],
  ] as const) {
    mkdirSync(join(folder.root, 'proc', pid, 'ns'), { recursive: true });
    symlinkSync(network, join(folder.root, 'proc', pid, 'ns/net'));
  }
  expect([...processesIn(folder.root)]).toEqual(['systemd']);
});
