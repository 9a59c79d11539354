import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { makeNetwork, type Shape, type TestNetwork, type TestNode, until } from './rotation.scenario.ts';

/** Keys are exchanged while pods send 500 packets a second each way, by real agents and wireguard-go. */

let network: TestNetwork;
let a: TestNode;
let b: TestNode;
const open = async (shape: Shape): Promise<() => Promise<void>> => {
  network = await makeNetwork(shape);
  [a, b] = network.nodes as [TestNode, TestNode];
  const stop = network.startFlow();
  return async () => {
    const counts = await stop();
    console.log(
      counts
        .map(
          ({ from, sent, lostCount, overflowed }) => `${from}: ${sent} sent, ${lostCount} lost, ${overflowed} not read`,
        )
        .join('; '),
    );
    for (const { lost, lostCount, overflowed, sent } of counts) {
      expect(sent).toBeGreaterThan(1000);
      // On a machine that is short of time a burst may be too much for the test's own socket: then it had arrived.
      expect(lostCount - overflowed, lost.join()).toBe(0);
    }
  };
};
afterEach(() => network[Symbol.asyncDispose]());

const hasRotated = (node: TestNode, generation: number): boolean =>
  node.keys.generation === generation && node.keys.nextPublicKey === undefined;
/** With its last interfaces, and without a key of old. */
const isSettled = (node: TestNode, devices: string): boolean =>
  node.devices().join() === devices && node.keys.hasPrevious !== true;
const publicKeysInUse = (node: TestNode): string[] =>
  node
    .run('wg', 'show', 'all', 'public-key')
    .trim()
    .split('\n')
    .map((line) => line.split('\t')[1]!);
/** Wherever the node keeps files. */
const filesOf = (node: TestNode, text: string): string =>
  node.run('sh', '-c', `grep -rlF '${text}' /etc/wireguard /run /var/lib /opt/cni /etc/cni || true`);
const privateKeyOf = (node: TestNode): string => readFileSync(join(node.keyFolder, 'server.priv'), 'utf8').trim();

const DEVICES = {
  mesh: { rest: ['wg51820', 'wg51820'], aRotated: ['wg58620', 'wg55220'], bothTwice: ['wg55220', 'wg58620'] },
  gateway: { rest: ['wg51822', 'wg51821'], aRotated: ['wg58622', 'wg55221'], bothTwice: ['wg55222', 'wg58621'] },
} as const;

describe.each<Shape>([
  { dataplane: 'ebpf', role: 'mesh' },
  { dataplane: 'netlink', role: 'gateway' },
])('$role, $dataplane', (shape) => {
  const { rest, aRotated, bothTwice } = DEVICES[shape.role];

  test('a node exchanges its key, then both at once: nothing is lost, and nothing of the old keys is left', async () => {
    const nothingLost = await open(shape);
    expect([a.devices(), b.devices()]).toEqual([[rest[0]], [rest[1]]]);
    const old = [privateKeyOf(a), privateKeyOf(b)];
    a.rotate();
    await until('a has a new key', () => hasRotated(a, 1));
    await until('the old interfaces are gone', () => isSettled(a, aRotated[0]) && isSettled(b, aRotated[1]));
    expect(publicKeysInUse(a)).toEqual([a.keys.publicKey]);
    expect(filesOf(a, old[0]!)).toBe('');
    a.rotate();
    b.rotate();
    await until('both have new keys', () => hasRotated(a, 2) && hasRotated(b, 1));
    await until('the old interfaces are gone', () => isSettled(a, bothTwice[0]) && isSettled(b, bothTwice[1]));
    expect(filesOf(b, old[1]!)).toBe('');
    expect([publicKeysInUse(a), publicKeysInUse(b)]).toEqual([[a.keys.publicKey], [b.keys.publicKey]]);
    await nothingLost();
  }, 240_000);
});

test('a peer whose agent is dead holds the exchange up, which is told, and loses nothing', async () => {
  const nothingLost = await open({ dataplane: 'ebpf', role: 'mesh' });
  await b.killAgent();
  a.rotate();
  await until('it is told', () =>
    a.log.some((line) => line.includes('KeyRotationBlocked') && line.includes('waits for b')),
  );
  expect([a.keys.generation, a.devices()]).toEqual([0, ['wg51820', 'wg58620']]);
  b.startAgent();
  await until('a has a new key', () => hasRotated(a, 1));
  await nothingLost();
}, 240_000);

/** Points of an exchange as they can be seen from outside. */
const STAGES: readonly (readonly [string, () => boolean])[] = [
  ['a next key was made', () => a.keys.nextPublicKey !== undefined],
  ['the new interface has come', () => a.devices().length === 2],
  ['a sends by it', () => sends(a, b.keys.publicKey, 'wg58620')],
  ['b sends by it', () => sends(b, a.keys.nextPublicKey ?? a.keys.publicKey, 'wg55220')],
  ['the next key is the current one', () => a.keys.generation === 1],
];
/** Whether more goes out over a lane than handshakes and keepalives. */
const sends = (node: TestNode, peer: string, device: string): boolean => {
  const line = node
    .run('wg', 'show', 'all', 'transfer')
    .split('\n')
    .find((text) => text.startsWith(`${device}\t${peer}\t`));
  return Number(line?.split('\t')[3] ?? 0) > 20_000;
};

test.each(['a', 'b'])(
  'an exchange goes on when the agent of %s is killed at any stage',
  async (victim) => {
    const nothingLost = await open({ dataplane: 'ebpf', role: 'mesh' });
    a.rotate();
    for (const [stage, isReached] of STAGES) {
      await until(stage, isReached);
      const node = victim === 'a' ? a : b;
      await node.killAgent();
      node.startAgent();
    }
    await until('it is over', () => hasRotated(a, 1) && isSettled(a, 'wg58620') && isSettled(b, 'wg55220'));
    expect(publicKeysInUse(a)).toEqual([a.keys.publicKey]);
    await nothingLost();
  },
  300_000,
);
