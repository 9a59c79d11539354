import { describe, expect, it } from 'vitest';
import { type Check, type Socket, StreamClient } from './stream-client.ts';
import { isStale, type StreamState } from './stream-state.ts';

/** Time that passes when the test says so. */
const testClock = () => {
  let now = 1000;
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  return {
    now: () => now,
    after: (ms: number, run: () => void) => {
      const timer = { at: now + ms, run };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    pass: async (ms: number): Promise<void> => {
      const end = now + ms;
      for (;;) {
        const next = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        timers.delete(next);
        now = next.at;
        next.run();
        await new Promise(setImmediate);
      }
      now = end;
    },
  };
};

interface TestSocket extends Socket {
  readonly position: string | undefined;
  readonly isClosed: boolean;
  readonly tell: (type: string, event?: object) => void;
}

const start = (answer: Awaited<ReturnType<Check>> = 'current') => {
  const clock = testClock();
  const sockets: TestSocket[] = [];
  const states: StreamState[] = [];
  const checks: (string | undefined)[] = [];
  const server = { answer };
  const client = new StreamClient({
    clock,
    random: () => 1,
    check: async (position) => {
      checks.push(position);
      return server.answer;
    },
    connect: (position) => {
      const heard = new Map<string, (event: never) => void>();
      const socket = {
        position,
        isClosed: false,
        addEventListener: (type: string, listener: (event: never) => void) => void heard.set(type, listener),
        close: () => void (socket.isClosed = true),
        tell: (type: string, event: object = {}) => heard.get(type)?.(event as never),
      };
      sockets.push(socket);
      return socket;
    },
    onState: (state) => void states.push(state),
  });
  client.start();
  const last = () => sockets.at(-1)!;
  return {
    ...{ clock, client, sockets, states, checks, server, last },
    open: () => last().tell('open'),
    say: (message: object) => last().tell('message', { data: JSON.stringify(message) }),
    close: async (code: number, reason = '') => {
      last().tell('close', { code, reason });
      await new Promise(setImmediate);
    },
    get isStale() {
      return isStale(client.state, clock.now());
    },
  };
};

const VIEW = { type: 'view', position: 'a-1', view: { nodes: { n1: { problems: 0 }, n2: { problems: 0 } } } };

const live = (answer: Awaited<ReturnType<Check>> = 'current') => {
  const stream = start(answer);
  stream.open();
  stream.say(VIEW);
  return stream;
};

describe('the client of the stream', () => {
  it('takes the view, and updates of it; what they leave stays the same object', () => {
    const { client, say } = live();
    const before = client.state.view!;
    say({ type: 'update', position: 'a-2', patch: { nodes: { n1: { problems: 2 } } } });
    expect(client.state).toMatchObject({ phase: 'live', position: 'a-2', view: { nodes: { n1: { problems: 2 } } } });
    expect(client.state.view!.nodes['n2']).toBe(before.nodes['n2']);
  });

  it('passes over a message of a kind that it does not know', () => {
    const { client, say } = live();
    say({ type: 'greeting', text: 'hello' });
    expect(client.state).toMatchObject({ phase: 'live', position: 'a-1' });
  });

  it('has the notices of the server that it is at, and the view goes on beside them', async () => {
    const { client, say, close, clock, open } = live();
    say({ type: 'notices', notices: ['Redis is away'] });
    expect(client.state).toMatchObject({ phase: 'live', position: 'a-1', notices: ['Redis is away'] });
    say({ type: 'update', position: 'a-2', patch: { nodes: { n1: { problems: 2 } } } });
    expect(client.state).toMatchObject({ position: 'a-2', notices: ['Redis is away'] });
    await close(1006);
    await clock.pass(500);
    open();
    expect(client.state.notices).toEqual([]);
    say({ type: 'notices', notices: 7 });
    expect(client.state).toMatchObject({ phase: 'live', notices: [] });
  });

  it('goes on from its position after a break, and waits longer each time', async () => {
    const { clock, sockets, close, open, client } = live();
    await close(1006);
    expect(client.state).toMatchObject({ phase: 'waiting', retryAt: clock.now() + 500 });
    await clock.pass(500);
    expect(sockets.map(({ position }) => position)).toEqual([undefined, 'a-1']);
    await close(1006);
    expect(client.state.retryAt).toBe(clock.now() + 1000);
    await clock.pass(1000);
    open();
    expect(client.state).toMatchObject({ phase: 'live', view: { nodes: {} } });
    expect(client.state.reason).toBeUndefined();
    await clock.pass(10_000);
    await close(1006);
    expect(client.state.retryAt).toBe(clock.now() + 500);
  });

  it('takes a whole view where the server does not know its position any more', async () => {
    const { clock, close, open, say, client } = live();
    await close(1001);
    await clock.pass(500);
    open();
    say({ type: 'view', position: 'b-1', view: { nodes: { n9: {} } } });
    expect(client.state).toMatchObject({ position: 'b-1' });
    expect(Object.keys(client.state.view!.nodes)).toEqual(['n9']);
  });

  it.each([
    [4401, 'the token has expired', /not accept the token any more: the token has expired/],
    [4403, '', /may not read/],
  ])('ends at close code %i, and tries nothing more', async (code, reason, text) => {
    const { clock, close, sockets, client } = live();
    await close(code, reason);
    expect(client.state).toMatchObject({ phase: 'ended', reason: expect.stringMatching(text) as string });
    await clock.pass(120_000);
    expect(sockets).toHaveLength(1);
  });

  it('waits for at least five seconds where the server asks for it', async () => {
    const { clock, close, client } = live();
    await close(1013, 'permission cannot be reviewed');
    expect(client.state.retryAt).toBe(clock.now() + 5000);
  });

  it.each([
    ['unauthenticated', 'ended', /does not accept/],
    ['forbidden', 'ended', /may not read/],
    ['failed', 'waiting', /was lost/],
    ['moved', 'waiting', /too many/],
  ] as const)('asks why an upgrade is refused: %s', async (answer, phase, reason) => {
    const { close, client, checks } = start(answer);
    await close(1006);
    expect(checks).toEqual([undefined]);
    expect(client.state.phase).toBe(phase);
    expect(client.state.reason).toMatch(reason);
  });

  it('asks when there is silence, so that what has not changed is not called stale', async () => {
    const stream = live();
    await stream.clock.pass(60_000);
    expect(stream.isStale).toBe(false);
    expect(stream.client.state.updatedAt).toBe(1000);
    expect(stream.checks.length).toBeGreaterThan(4);
    expect(stream.sockets).toHaveLength(1);
  });

  it('calls what it has stale after 15 s without an answer, and connects anew after 30 s', async () => {
    const stream = live('failed');
    await stream.clock.pass(15_000);
    expect(stream.isStale).toBe(false);
    await stream.clock.pass(1000);
    expect(stream.isStale).toBe(true);
    await stream.clock.pass(14_000);
    expect(stream.client.state).toMatchObject({ phase: 'waiting', view: {} });
    expect(stream.sockets[0]!.isClosed).toBe(true);
  });

  it('calls what it has stale while the stream is down', async () => {
    const stream = live();
    await stream.close(1006);
    expect(stream.isStale).toBe(true);
  });

  it('connects anew where the view went on and the stream did not say so', async () => {
    const { clock, sockets } = live('moved');
    await clock.pass(8000);
    expect(sockets.map(({ position }) => position)).toEqual([undefined, 'a-1']);
  });

  it('asks for all of the view after a message that cannot be read', async () => {
    const { clock, client, sockets, last } = live();
    last().tell('message', { data: '{"type":"upd' });
    expect(client.state).toMatchObject({ phase: 'waiting', view: {} });
    await clock.pass(500);
    expect(sockets.at(-1)!.position).toBeUndefined();
  });

  it('calls the view stale after such a message until all of it has come, whatever else opens or says something', async () => {
    const bed = live();
    const { clock, client, last } = bed;
    last().tell('message', { data: '{"type":"upd' });
    const { confirmedAt } = client.state;
    await clock.pass(500);
    last().tell('open');
    expect(client.state).toMatchObject({ phase: 'live', confirmedAt });
    expect(bed.isStale).toBe(true);
    last().tell('message', { data: JSON.stringify({ type: 'notices', notices: [] }) });
    expect(bed.isStale).toBe(true);
    last().tell('message', { data: JSON.stringify({ type: 'view', position: 'a-9', view: {} }) });
    expect(bed.isStale).toBe(false);
  });

  it('does not wait for ever for a connection', async () => {
    const { clock, client, sockets } = start();
    await clock.pass(10_000);
    expect(client.state.phase).toBe('waiting');
    expect(sockets[0]!.isClosed).toBe(true);
  });

  it('looks at once when it is woken', async () => {
    const { client, close, sockets, checks } = live();
    client.wake();
    expect(checks).toEqual(['a-1']);
    await close(1006);
    client.wake();
    expect(sockets).toHaveLength(2);
  });

  it('does not hear a socket that it has left', async () => {
    const { client, sockets, clock } = live('moved');
    await clock.pass(8000);
    sockets[0]!.tell('close', { code: 4401, reason: '' });
    sockets[0]!.tell('message', { data: JSON.stringify({ ...VIEW, position: 'old' }) });
    expect(client.state).toMatchObject({ phase: 'connecting', position: 'a-1' });
  });

  it('says nothing more when it is stopped', async () => {
    const { client, clock, states, sockets } = live();
    client.stop();
    const { length } = states;
    await clock.pass(120_000);
    expect(states).toHaveLength(length);
    expect(sockets[0]!.isClosed).toBe(true);
  });
});
