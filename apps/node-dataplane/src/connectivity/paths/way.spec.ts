import { beforeEach, describe, expect, test } from 'vitest';
import type { PathPeer } from './messages.ts';
import { createWayChooser, type Situation, type WayChooser } from './way.ts';

const PROXY = '127.0.0.1:40000';
const DIRECT = '192.0.2.1:51820';
const peer: PathPeer = {
  node: 'b',
  publicKey: 'B',
  mode: 'auto',
  intervalMs: 500,
  detectMultiplier: 3,
  direct: DIRECT,
  proxy: PROXY,
};
const usual: Situation = { peer, isRelayUp: true, direct: DIRECT };

let ways: (string | undefined)[];
let stances: string[];
let chooser: WayChooser;
const open = (situation: Situation, isAdopted = false): WayChooser => {
  [ways, stances] = [[], []];
  chooser = createWayChooser({
    ...situation,
    isAdopted,
    session: isAdopted ? DIRECT : undefined,
    onWay: () => ways.push(chooser.way && `${chooser.way.path} ${chooser.way.endpoint} ${chooser.way.reason}`),
    onStance: () => stances.push(chooser.stance),
  });
  return chooser;
};
const pass = (event: 'reply' | 'silence', count: number): void => {
  for (let interval = 0; interval < count; interval++) chooser.passed(event);
};
beforeEach(() => open(usual));

test('a way begins on the relay, moves when both ends have proven direct, and goes back when it fails', () => {
  expect(chooser.way).toEqual({ path: 'relay', endpoint: PROXY, reason: 'unvalidated' });
  pass('reply', 3);
  chooser.peerSaid('ready');
  pass('silence', 3);
  expect(ways).toEqual([`direct ${DIRECT} validated`, `relay ${PROXY} unanswered`]);
  expect(stances).toEqual(['ready', 'direct', 'relay']);
});

test('who follows its peer back says so', () => {
  pass('reply', 3);
  chooser.peerSaid('direct');
  chooser.peerSaid('relay');
  expect(ways).toEqual([`direct ${DIRECT} validated`, `relay ${PROXY} peer`]);
});

test('what an agent of before left on direct stays there', () => {
  expect(open(usual, true).way).toEqual({ path: 'direct', endpoint: DIRECT, reason: 'adopted' });
  pass('reply', 9);
  expect(ways).toEqual([]);
});

describe('a handshake that went directly', () => {
  const { proxy: _, ...withoutProxy } = peer;

  test('keeps a way direct that was so for want of a proxy, until probes have proven it', () => {
    open({ ...usual, peer: withoutProxy });
    chooser.shookHands(DIRECT);
    chooser.update(usual);
    pass('reply', 3);
    expect([chooser.stance, chooser.way?.path]).toEqual(['ready', 'direct']);
    chooser.peerSaid('ready');
    expect([ways, chooser.stance]).toEqual([[`direct ${DIRECT} handshake`, `direct ${DIRECT} validated`], 'direct']);
  });

  test('keeps packets where WireGuard sends them, also while the peer is on the relay', () => {
    chooser.shookHands('198.51.100.7:2048');
    chooser.peerSaid('relay');
    expect(ways).toEqual(['direct 198.51.100.7:2048 handshake']);
    pass('reply', 3);
    chooser.peerSaid('ready');
    expect(ways.slice(1)).toEqual([`direct ${DIRECT} validated`]);
  });

  test('counts for nothing once as many probes were lost as end a direct way', () => {
    chooser.shookHands(DIRECT);
    pass('silence', 2);
    expect(chooser.way?.path).toBe('direct');
    pass('silence', 1);
    chooser.shookHands(DIRECT);
    expect(ways).toEqual([`direct ${DIRECT} handshake`, `relay ${PROXY} unvalidated`]);
  });

  test('says nothing new of a way that failed, or was left with the peer', () => {
    pass('reply', 3);
    chooser.peerSaid('ready');
    chooser.peerSaid('relay');
    chooser.shookHands(DIRECT);
    expect(chooser.way?.path).toBe('relay');
  });

  test('does not matter where the mesh says always, nor afterwards', () => {
    const always = { ...usual, peer: { ...peer, mode: 'always' } } as const;
    open(always).shookHands(DIRECT);
    expect(chooser.way?.path).toBe('relay');
    chooser.update(always);
    chooser.update(usual); // long after that handshake
    expect(chooser.way?.path).toBe('relay');
  });
});

describe('other circumstances', () => {
  test('no relay is connected any more, and is again', () => {
    chooser.update({ ...usual, isRelayUp: false });
    chooser.update(usual);
    expect(ways).toEqual([`direct ${DIRECT} noRelay`, `relay ${PROXY} unvalidated`]);
  });

  test('the proxy comes later, or on another port', () => {
    const { proxy: _, ...without } = peer;
    expect(open({ ...usual, peer: without }).way).toMatchObject({ path: 'direct', reason: 'noRelay' });
    chooser.update(usual);
    chooser.update({ ...usual, peer: { ...peer, proxy: '127.0.0.1:40001' } });
    expect(ways).toEqual([`relay ${PROXY} unvalidated`, 'relay 127.0.0.1:40001 unvalidated']);
  });

  test('the planned address is another: it is to be proven anew', () => {
    pass('reply', 3);
    chooser.peerSaid('ready');
    const moved = '192.0.2.9:51820';
    chooser.update({ ...usual, peer: { ...peer, direct: moved }, direct: moved });
    expect(ways.at(-1)).toBe(`relay ${PROXY} unvalidated`);
  });

  test('the mesh says always: the relay, whatever is proven, and the peer is told so', () => {
    pass('reply', 3);
    chooser.peerSaid('ready');
    chooser.update({ ...usual, peer: { ...peer, mode: 'always' } });
    expect([ways.at(-1), stances.at(-1)]).toEqual([`relay ${PROXY} always`, 'relay']);
  });

  test('an address that was observed only is as good as a planned one', () => {
    const { direct: _, ...behindNat } = peer;
    open({ peer: behindNat, isRelayUp: true, direct: undefined });
    chooser.update({ peer: behindNat, isRelayUp: true, direct: '198.51.100.7:2048' });
    pass('reply', 3);
    chooser.peerSaid('ready');
    chooser.update({ peer: behindNat, isRelayUp: true, direct: '198.51.100.7:2049' }); // its mapping is another
    expect(ways).toEqual([
      `relay ${PROXY} unvalidated`,
      'direct 198.51.100.7:2048 validated',
      'direct 198.51.100.7:2049 validated',
    ]);
  });

  test('there is neither: WireGuard keeps what it has', () => {
    const { direct: _, proxy: __, ...nothing } = peer;
    expect(open({ peer: nothing, isRelayUp: false, direct: undefined }).way).toBeUndefined();
  });
});
