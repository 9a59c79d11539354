import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

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

  test.each(refusals)('%s, STATUS says that no pod could be attached', async (_, prepare) => {
    await prepare();
    expect(JSON.parse((await run('STATUS', config)).output)).toMatchObject({ code: 50 });
  });

  test('an unknown command is an error of the environment, which names it', async () => {
    const { code, output } = await run('ATTACH', config);
    expect([code, JSON.parse(output)]).toEqual([
      1,
      { cniVersion: '0.4.0', code: 4, msg: expect.stringContaining('CNI_COMMAND'), details: 'ATTACH' },
    ]);
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

/** A pod's network namespace, which lives as long as this process. */
const openNamespace = async (): Promise<{ readonly holder: ChildProcess; readonly path: string }> => {
  const holder = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', 'unshare', '--net', 'sh', '-c', 'echo there; exec sleep infinity'],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  await once(holder.stdout, 'data');
  return { holder, path: `/proc/${holder.pid}/ns/net` };
};

const bytesOf = (name: string, count: number, ...addresses: readonly (readonly number[])[]): Buffer =>
  Buffer.concat([
    Buffer.from(name.padEnd(16, '\0')),
    Buffer.of(count),
    ...addresses.map((address) => Buffer.from([...address, ...Array<number>(18 - address.length).fill(0)])),
  ]);

const V4 = [4, 24, 192, 0, 2, 7];
const V6 = [6, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
const NET1 = bytesOf('net1', 2, V4, V6);
const RESULT = '{"cniVersion":"0.4.0"}';
/** An answer with these interfaces. */
const settling = (...interfaces: readonly Buffer[]): Buffer =>
  Buffer.concat([Buffer.of(0xff, interfaces.length), ...interfaces, Buffer.from(`\0${RESULT}`)]);

interface Link {
  readonly flags: readonly string[];
  readonly addr_info: readonly {
    readonly local: string;
    readonly prefixlen: number;
    readonly scope: string;
    readonly tentative?: boolean;
  }[];
}

describe('interfaces of an answer', () => {
  let holder: ChildProcess;
  let netns: string;
  const inPod = (...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${netns}`, ...argv], { encoding: 'utf8' });
  const linkOf = (name: string): Link =>
    (JSON.parse(inPod('ip', '-json', 'address', 'show', 'dev', name)) as [Link])[0];
  /** Up or not, and its addresses but for those that the kernel gives it. */
  const stateOf = (name: string) => {
    const { flags, addr_info } = linkOf(name);
    const addresses = addr_info.filter(({ scope }) => scope === 'global');
    return {
      isUp: flags.includes('UP'),
      addresses: addresses.map(
        ({ local, prefixlen, tentative }) => `${local}/${prefixlen}${tentative ? ' tentative' : ''}`,
      ),
    };
  };
  const UNTOUCHED = { isUp: false, addresses: [] };
  const SETTLED = { isUp: true, addresses: ['192.0.2.7/24', '2001:db8::7/64'] };
  const runWith = async (
    answer: Buffer,
    command = 'ADD',
    environment: Record<string, string> = { CNI_NETNS: netns },
  ) => {
    await agent(answering(() => answer));
    const result = await run(command, config, environment);
    await new Promise((resolve) => server!.close(resolve));
    return result;
  };
  /** The error object of a command that failed. */
  const errorOf = async (...argv: Parameters<typeof runWith>): Promise<{ code: number; details: string }> => {
    const { code, output } = await runWith(...argv);
    expect(code).toBe(1);
    return JSON.parse(output) as { code: number; details: string };
  };

  beforeEach(async () => {
    ({ holder, path: netns } = await openNamespace());
    inPod('ip', 'link', 'add', 'net1', 'type', 'veth', 'peer', 'name', 'port1');
    inPod('ip', 'link', 'set', 'port1', 'up');
  });
  afterEach(async () => {
    const exit = once(holder, 'exit');
    holder.kill('SIGKILL');
    await exit;
  });

  test('are up with their addresses, which can be used at once, when the result is printed; also twice', async () => {
    expect(await runWith(settling(NET1))).toEqual({ code: 0, output: RESULT });
    expect(stateOf('net1')).toEqual(SETTLED);
    expect(await runWith(settling(NET1))).toEqual({ code: 0, output: RESULT });
    expect(stateOf('net1')).toEqual(SETTLED);
    expect(linkOf('net1').addr_info[0]).not.toHaveProperty('broadcast');
  });

  test('have their IPv6 addresses where the namespace began without IPv6; what needs none of it stays as it is', async () => {
    inPod('ip', 'link', 'add', 'net2', 'type', 'veth', 'peer', 'name', 'port2');
    for (const name of ['net1', 'net2']) inPod('sysctl', '-qw', `net.ipv6.conf.${name}.disable_ipv6=1`);
    expect((await runWith(settling(NET1, bytesOf('net2', 1, V4)))).code).toBe(0);
    expect(stateOf('net1')).toEqual(SETTLED);
    const off = ['net1', 'net2'].map((name) => inPod('sysctl', '-n', `net.ipv6.conf.${name}.disable_ipv6`).trim());
    expect(off).toEqual(['0', '1']);
  });

  test('may be several, some without an address', async () => {
    inPod('ip', 'link', 'add', 'a23456789012345', 'type', 'veth', 'peer', 'name', 'port2');
    expect((await runWith(settling(NET1, bytesOf('a23456789012345', 0)))).code).toBe(0);
    expect([stateOf('net1'), stateOf('a23456789012345')]).toEqual([SETTLED, { isUp: true, addresses: [] }]);
  });

  test('that are not there are named, and ADD is to be tried again', async () => {
    const error = await errorOf(settling(NET1, bytesOf('net2', 0)));
    expect(error).toMatchObject({ code: 11, details: 'interface net2: No such device' });
  });

  test('an address that the kernel refuses is named, and the interface stays down', async () => {
    const multicast = [6, 64, 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    const error = await errorOf(settling(bytesOf('net1', 1, multicast)));
    expect(error).toMatchObject({ code: 11, details: expect.stringMatching(/^interface net1, address ff02::1\/64: /) });
    expect(stateOf('net1')).toEqual(UNTOUCHED);
  });

  test.each([
    ['that is not there', { CNI_NETNS: '/run/netns/"none"' }, 'network namespace /run/netns/"none": No such file'],
    ['that is none', { CNI_NETNS: '/proc/self/ns/uts' }, 'network namespace /proc/self/ns/uts: Invalid argument'],
    ['that is not given', {}, 'CNI_NETNS is not set'],
  ])('a network namespace %s is an error', async (_, environment: Record<string, string>, details) => {
    const error = await errorOf(settling(NET1), 'ADD', environment);
    expect(error).toMatchObject({ code: 11, details: expect.stringContaining(details) });
  });

  const start = settling(NET1).subarray(0, 2 + NET1.length + 1);
  const malformed: readonly (readonly [string, Buffer])[] = [
    ...Array.from(
      { length: start.length - 1 },
      (_, index) => [`${index + 1} bytes`, start.subarray(0, index + 1)] as const,
    ),
    ['no interface', settling()],
    ['17 interfaces', settling(...Array<Buffer>(17).fill(NET1))],
    ['17 addresses', settling(bytesOf('net1', 17, ...Array.from({ length: 17 }, () => V4)))],
    ['family 5', settling(NET1, bytesOf('net1', 1, [5, 24, 192, 0, 2, 7]))],
    ['length 33', settling(NET1, bytesOf('net1', 1, [4, 33, 192, 0, 2, 7]))],
    ['length 129', settling(NET1, bytesOf('net1', 1, [6, 129]))],
    ['a byte behind an IPv4 address', settling(NET1, bytesOf('net1', 1, [...V4, 1]))],
    ['a name without end', settling(NET1, bytesOf('net1'.padEnd(16, 'x'), 0))],
    ['no name', settling(NET1, bytesOf('', 0))],
    ['a name with a byte behind its end', settling(NET1, bytesOf('net1\0x', 0))],
    ['a name with a slash', settling(NET1, bytesOf('../all', 0))],
    ['the name of a folder', settling(NET1, bytesOf('..', 0))],
    ['a name that is no text', settling(NET1, bytesOf('net\x01', 0))],
    ['an exit code that is not 0', Buffer.concat([start.subarray(0, -1), Buffer.of(1)])],
    ['interfaces twice', Buffer.concat([start.subarray(0, -1), settling(NET1)])],
  ];

  test('that are malformed are an error and change nothing', async () => {
    for (const [name, answer] of malformed)
      expect(await errorOf(answer), name).toMatchObject({ code: 11, msg: expect.stringContaining('cannot be read') });
    expect(stateOf('net1')).toEqual(UNTOUCHED);
  });

  test('belong to ADD: for CHECK they are an error, and DEL succeeds', async () => {
    expect(await errorOf(settling(NET1), 'CHECK')).toMatchObject({ code: 11 });
    expect(await runWith(settling(NET1), 'DEL')).toEqual({ code: 0, output: '' });
    expect(stateOf('net1')).toEqual(UNTOUCHED);
  });

  test('none: the namespace is not touched', async () => {
    expect(await runWith(Buffer.from(`\0${RESULT}`), 'ADD', { CNI_NETNS: '/run/netns/none' })).toEqual({
      code: 0,
      output: RESULT,
    });
  });
});

test('it is small and needs no library', () => {
  expect(execFileSync('readelf', ['-dl', plugin], { encoding: 'utf8' })).not.toMatch(/NEEDED|INTERP/);
});
