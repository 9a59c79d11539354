import { expect, test } from 'vitest';
import { type TestNode, until } from './rotation.scenario.ts';
import { exchangeKeys, hasRotated, isSettled, makePair, type Pair, publicKeysInUse } from './rotation.testdata.ts';

/** What rotation.kernel.spec.ts leaves out: gateways and kernel routes, and agents that are killed. */

test('between gateways a node exchanges its key, then both at once: nothing is lost, and nothing of the old keys is left', async () => {
  await expect(exchangeKeys({ dataplane: 'netlink', role: 'gateway' })).resolves.toBeUndefined();
}, 240_000);

test('a peer whose agent is dead holds the exchange up, which is told, and loses nothing', async () => {
  await using pair = await makePair({ dataplane: 'ebpf', role: 'mesh' });
  const { a, b } = pair;
  await b.killAgent();
  a.rotate();
  await until('it is told', () =>
    a.log.some((line) => line.includes('KeyRotationBlocked') && line.includes('waits for b')),
  );
  expect([a.keys.generation, a.devices()]).toEqual([0, ['wg51820', 'wg58620']]);
  b.startAgent();
  await until('a has a new key', () => hasRotated(a, 1));
  await pair.expectNothingLost();
}, 240_000);

/** Whether more goes out over a lane than handshakes and keepalives. */
const sends = (node: TestNode, peer: string, device: string): boolean => {
  const line = node
    .run('wg', 'show', 'all', 'transfer')
    .split('\n')
    .find((text) => text.startsWith(`${device}\t${peer}\t`));
  return Number(line?.split('\t')[3] ?? 0) > 20_000;
};

/** Points of an exchange as they can be seen from outside. */
const stagesOf = ({ a, b }: Pair): readonly (readonly [string, () => boolean])[] => [
  ['a next key was made', () => a.keys.nextPublicKey !== undefined],
  ['the new interface has come', () => a.devices().length === 2],
  ['a sends by it', () => sends(a, b.keys.publicKey, 'wg58620')],
  ['b sends by it', () => sends(b, a.keys.nextPublicKey ?? a.keys.publicKey, 'wg55220')],
  ['the next key is the current one', () => a.keys.generation === 1],
];
test.each(['a', 'b'])(
  'an exchange goes on when the agent of %s is killed at any stage',
  async (victim) => {
    await using pair = await makePair({ dataplane: 'ebpf', role: 'mesh' });
    const { a, b } = pair;
    a.rotate();
    for (const [stage, isReached] of stagesOf(pair)) {
      await until(stage, isReached);
      const node = victim === 'a' ? a : b;
      await node.killAgent();
      node.startAgent();
    }
    await until('it is over', () => hasRotated(a, 1) && isSettled(a, 'wg58620') && isSettled(b, 'wg55220'));
    expect(publicKeysInUse(a)).toEqual([a.keys.publicKey]);
    await pair.expectNothingLost();
  },
  300_000,
);
