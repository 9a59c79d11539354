import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { makeNetwork, type Shape, type TestNode, until } from './rotation.scenario.ts';

/** Two nodes whose pods send 500 packets a second each way, with real agents and wireguard-go, and what is to be seen of their keys. */
export interface Pair extends AsyncDisposable {
  readonly a: TestNode;
  readonly b: TestNode;
  /** Ends the flow, and expects that each packet arrived. */
  expectNothingLost(): Promise<void>;
}

export const makePair = async (shape: Shape): Promise<Pair> => {
  const network = await makeNetwork(shape);
  const [a, b] = network.nodes as [TestNode, TestNode];
  const stop = network.startFlow();
  return {
    a,
    b,
    async expectNothingLost() {
      const counts = await stop();
      console.log(
        counts
          .map(
            ({ from, sent, lostCount, overflowed }) =>
              `${from}: ${sent} sent, ${lostCount} lost, ${overflowed} not read`,
          )
          .join('; '),
      );
      for (const { lost, lostCount, overflowed, sent } of counts) {
        expect(sent).toBeGreaterThan(1000);
        // On a machine that is short of time a burst may be too much for the test's own socket: then it had arrived.
        expect(lostCount - overflowed, lost.join()).toBe(0);
      }
    },
    [Symbol.asyncDispose]: () => network[Symbol.asyncDispose](),
  };
};

export const hasRotated = (node: TestNode, generation: number): boolean =>
  node.keys.generation === generation && node.keys.nextPublicKey === undefined;

/** With its last interfaces, and without a key of old. */
export const isSettled = (node: TestNode, devices: string): boolean =>
  node.keys.hasPrevious !== true && node.devices().join() === devices;

export const publicKeysInUse = (node: TestNode): string[] =>
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

/** A node exchanges its key, then both do at once. */
export const exchangeKeys = async (shape: Shape): Promise<void> => {
  const { rest, aRotated, bothTwice } = DEVICES[shape.role];
  await using pair = await makePair(shape);
  const { a, b } = pair;
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
  await pair.expectNothingLost();
};
