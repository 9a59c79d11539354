import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { createNetns, type Netns } from '@unbounded/netlink';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { encodeAnswer } from '../../node-dataplane/src/attachment/answer.codec.ts';

const folder = new URL('../', import.meta.url).pathname;
const plugin = join(folder, 'build/unbounded-cni');

let directory: string;
let path: string;
let server: Server | undefined;

beforeAll(() => void execFileSync(join(folder, 'build.sh'), { stdio: 'inherit' }));
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cni-'));
  path = join(directory, 'cni.sock');
});
afterEach(() => {
  server?.close();
  server = undefined;
  rmSync(directory, { recursive: true });
});

/** An agent that does this with every connection. */
const agent = (serve: (socket: Socket) => void): Promise<void> =>
  new Promise((resolve) => {
    server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => socket.destroy());
      serve(socket);
    }).listen(path, resolve);
  });

/** Reads a whole request, then answers. */
const answering =
  (answer: (request: Buffer) => Buffer) =>
  (socket: Socket): void => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('end', () => socket.end(answer(Buffer.concat(chunks))));
  };

const run = async (command: string | undefined, config: string, more: Record<string, string> = {}) => {
  const env = { UNBOUNDED_CNI_SOCKET: path, ...(command !== undefined && { CNI_COMMAND: command }), ...more };
  const child = spawn(plugin, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.on('error', () => {}); // it may end without reading
  child.stdin.end(config);
  const exit = new Promise<number | string | null>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal)),
  );
  const output = await text(child.stdout);
  return { code: await exit, output };
};

const config = JSON.stringify({ cniVersion: '0.4.0', name: 'net', type: 'unbounded-cni' });

describe('with the agent', () => {
  test('environment and configuration arrive whole, and the answer goes back byte by byte', async () => {
    let seen: Buffer = Buffer.alloc(0);
    await agent(
      answering((request) => {
        seen = request;
        return Buffer.from('\0{"cniVersion":"0.4.0","ips":["ü"]}\n');
      }),
    );
    const result = await run('ADD', config, { CNI_NETNS: '/run/netns/x y', CNI_ARGS: 'A=1;B="2"', HOME: '/root' });
    expect(result).toEqual({ code: 0, output: '{"cniVersion":"0.4.0","ips":["ü"]}\n' });
    const [environment, length] = [seen.readUInt32LE(0), seen.readUInt32LE(4)];
    const variables = seen
      .subarray(8, 8 + environment)
      .toString()
      .split('\0')
      .filter((entry) => entry !== '');
    expect(variables.toSorted()).toEqual(['CNI_ARGS=A=1;B="2"', 'CNI_COMMAND=ADD', 'CNI_NETNS=/run/netns/x y']);
    expect(seen.subarray(8 + environment + 1).toString()).toBe(config);
    expect(length).toBe(Buffer.byteLength(config));
  });

  test('the first byte of the answer is the exit code', async () => {
    await agent(answering(() => Buffer.from('\x07{"code":7}')));
    expect(await run('ADD', config)).toEqual({ code: 7, output: '{"code":7}' });
  });

  test('a large configuration passes, with the result of the plugins before in it', async () => {
    const large = JSON.stringify({ cniVersion: '1.0.0', prevResult: { padding: 'x'.repeat(200_000) } });
    await agent(
      answering((request) => Buffer.concat([Buffer.of(0), request.subarray(8 + request.readUInt32LE(0) + 1)])),
    );
    expect(await run('ADD', large)).toEqual({ code: 0, output: large });
  });
});

describe('without the agent', () => {
  const refusals: readonly [string, () => Promise<void>][] = [
    ['that is not there', async () => {}],
    ['that hangs up at once', () => agent((socket) => socket.destroy())],
    ['that hangs up without a word', () => agent(answering(() => Buffer.alloc(0)))],
  ];

  test.each(refusals)('%s, ADD asks to try again, in the version of the configuration', async (_, prepare) => {
    await prepare();
    const { code, output } = await run('ADD', config);
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({
      cniVersion: '0.4.0',
      code: 11,
      msg: expect.stringContaining('does not answer'),
    });
  });

  test.each(refusals)('%s, DEL succeeds and says nothing', async (_, prepare) => {
    await prepare();
    expect(await run('DEL', JSON.stringify({ padding: 'x'.repeat(500_000) }))).toEqual({ code: 0, output: '' });
  });

  test('VERSION is answered', async () => {
    const { code, output } = await run('VERSION', JSON.stringify({ cniVersion: '1.0.0' }));
    expect(code).toBe(0);
    expect(JSON.parse(output)).toEqual({
      cniVersion: '1.0.0',
      supportedVersions: ['0.3.1', '0.4.0', '1.0.0', '1.1.0'],
    });
  });

  test('no command is an error of the environment; whatever stands in the version, the error is JSON', async () => {
    expect(JSON.parse((await run(undefined, '')).output)).toMatchObject({ code: 4 });
    for (const version of ['"', '\\', '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0', '', '\0', '{']) {
      const { output } = await run('ADD', `{"cniVersion": "${version}`);
      expect(JSON.parse(output)).toMatchObject({ code: 11 });
    }
  });
});

describe('an answer that begins with interfaces of the pod', () => {
  const settle = [{ name: 'net1', addresses: ['192.0.2.7/24', '2001:db8::7/64'] }];
  const result = { exitCode: 0, output: '{"cniVersion":"0.4.0"}\n' };
  const inside = (ns: Netns, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
  const pod = (): Netns => {
    const ns = createNetns();
    inside(ns, 'ip', 'link', 'add', 'net1', 'type', 'veth', 'peer', 'name', 'other');
    inside(ns, 'ip', 'link', 'set', 'other', 'up');
    return ns;
  };

  test('gives them their addresses and sets them up, before it prints the result', async () => {
    using ns = pod();
    await agent(answering(() => encodeAnswer({ ...result, settle })));
    expect(await run('ADD', config, { CNI_NETNS: ns.path })).toEqual({ code: 0, output: result.output });
    const shown = inside(ns, 'ip', 'addr', 'show', 'dev', 'net1');
    expect(shown).toContain('state UP');
    expect(shown).toContain('inet 192.0.2.7/24 ');
    expect(shown).toMatch(/inet6 2001:db8::7\/64 scope global (nodad|\n)/);
    expect(shown).not.toContain('2001:db8::7/64 scope global tentative');
    // The runtime may ask once more.
    expect(await run('ADD', config, { CNI_NETNS: ns.path })).toEqual({ code: 0, output: result.output });
  });

  test('asks to try again, and says of which interface, where one is not there', async () => {
    using ns = pod();
    await agent(answering(() => encodeAnswer({ ...result, settle: [{ name: 'net9', addresses: [] }] })));
    const { code, output } = await run('ADD', config, { CNI_NETNS: ns.path });
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ code: 11, details: 'no interface net9: No such device' });
  });

  test('asks to try again where the namespace is gone', async () => {
    await agent(answering(() => encodeAnswer({ ...result, settle })));
    const { output } = await run('ADD', config, { CNI_NETNS: '/run/netns/gone' });
    expect(JSON.parse(output)).toMatchObject({ code: 11, details: expect.stringContaining('/run/netns/gone') });
  });

  test('that is cut off anywhere, or not as it must be, changes nothing and is an error', async () => {
    using ns = pod();
    const whole = encodeAnswer({ ...result, output: '', settle });
    const changed = (at: number, value: number): Buffer => {
      const bytes = Buffer.from(whole);
      bytes[at] = value;
      return bytes;
    };
    const [COUNT, NAME, FAMILY, LENGTH] = [1, 2, 19, 20];
    const cut = [1, 2, 10, 18, 19, 30, 40, whole.length - 1].map((length) => whole.subarray(0, length));
    const wrong = [changed(COUNT, 0), changed(COUNT, 17), changed(NAME, 0), changed(FAMILY, 5), changed(LENGTH, 33)];
    let next = Buffer.alloc(0);
    await agent(answering(() => next));
    for (const answer of [...cut, ...wrong]) {
      next = Buffer.from(answer);
      const { code, output } = await run('ADD', config, { CNI_NETNS: ns.path });
      expect([code, JSON.parse(output)]).toMatchObject([
        1,
        { code: 11, msg: expect.stringContaining('another layout') },
      ]);
    }
    expect(inside(ns, 'ip', 'addr', 'show', 'dev', 'net1')).not.toContain('192.0.2.7');
  });
});

test('it is small and needs no library', () => {
  expect(execFileSync('readelf', ['-dl', plugin], { encoding: 'utf8' })).not.toMatch(/NEEDED|INTERP/);
});
