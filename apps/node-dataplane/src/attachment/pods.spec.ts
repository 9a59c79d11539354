import fs, { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { replaceInBuiltin } from '@unbounded/testing/builtin';
import { afterAll, expect, test, vi } from 'vitest';
import { createPodRegistry, type PodAttachment } from './pods.ts';

const folder = mkdtempSync(join(tmpdir(), 'pods-'));
afterAll(() => rmSync(folder, { recursive: true }));

const pod: PodAttachment = {
  namespace: 'default',
  name: 'web',
  uid: 'u',
  containerId: 'c1',
  netns: '/run/netns/c1',
  interface: 'eth0',
  hostVeth: 'veth1',
  mac: '02:00:00:00:00:01',
  addresses: ['100.64.1.2/24'],
};

test('a successor knows the pods, and attaching one waits for no disk', () => {
  const path = join(folder, 'pods.json');
  const synchronized = vi.fn();
  using _ = replaceInBuiltin(fs, { fsyncSync: synchronized });
  createPodRegistry(path).add(pod);
  expect(synchronized).not.toHaveBeenCalled();
  expect(createPodRegistry(path).list()).toEqual([pod]);
});
