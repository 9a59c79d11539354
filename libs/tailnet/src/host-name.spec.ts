import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hostNameOf, isHostName, type NamedPod } from './host-name.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const nameOf = (cluster: string, namespace: string, pod: string): string =>
  hostNameOf({ cluster, namespace, pod }, sha256);

test('a pod is named by its cluster, its namespace and its own name', () => {
  expect(nameOf('k8s', 'default', 'web-7b5d9c6f8-xyz')).toBe('k8s-default-web-7b5d9c6f8-xyz');
});

test.each<[string, NamedPod, RegExp]>([
  ['dots', { cluster: 'k8s', namespace: 'default', pod: 'web.0' }, /^k8s-default-web-0-[0-9a-f]{8}$/],
  ['upper case', { cluster: 'Prod', namespace: 'default', pod: 'web' }, /^prod-default-web-[0-9a-f]{8}$/],
  ['an underscore', { cluster: 'eu_1', namespace: 'default', pod: 'web' }, /^eu-1-default-web-[0-9a-f]{8}$/],
  ['two dashes', { cluster: 'a', namespace: 'b', pod: 'c--d' }, /^a-b-c-d-[0-9a-f]{8}$/],
  ['a cluster of other letters alone', { cluster: 'ü', namespace: 'b', pod: 'c' }, /^b-c-[0-9a-f]{8}$/],
  [
    'dashes at both places where a name can be cut',
    { cluster: 'k8s', namespace: 'x', pod: `${'p'.repeat(47)}-${'q'.repeat(8)}-${'r'.repeat(9)}` },
    /^k8s-x-p{47}-[0-9a-f]{8}$/,
  ],
  ['64 characters', { cluster: 'k8s', namespace: 'x', pod: 'p'.repeat(58) }, /^k8s-x-p{48}-[0-9a-f]{8}$/],
])('%s: what is lost of a name stands as a digest at its end', (_, pod, pattern) => {
  const name = hostNameOf(pod, sha256);
  expect(name).toMatch(pattern);
  expect(isHostName(name)).toBe(true);
});

test('63 characters stay as they are, and nothing but other letters still is a name', () => {
  expect(nameOf('k8s', 'x', 'p'.repeat(57))).toBe(`k8s-x-${'p'.repeat(57)}`);
  expect(nameOf('ü', 'ö', 'ä')).toMatch(/^pod-[0-9a-f]{8}$/);
});

test('names that are equal up to what was cut or replaced differ', () => {
  const long = 'p'.repeat(80);
  expect(nameOf('k8s', 'x', `${long}-1`)).not.toBe(nameOf('k8s', 'x', `${long}-2`));
  expect(nameOf('k8s', 'x', 'web.0')).not.toBe(nameOf('k8s', 'x', 'web_0'));
});

test('every name is a label of DNS, and the same each time', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string({ unit: 'binary' }), (cluster, namespace, pod) => {
      const name = nameOf(cluster, namespace, pod);
      expect(isHostName(name), name).toBe(true);
      expect(nameOf(cluster, namespace, pod)).toBe(name);
    }),
  );
});
