import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, watch } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import { createNetns, createRouteSocket, createTun, type Netns, type RouteSocket } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import {
  type DeviceSpec,
  diffDevice,
  generatePrivateKey,
  openUserspaceDevice,
  publicKeyOf,
  type WireGuardDevice,
} from '../src/index.ts';

const NODE = join(import.meta.dirname, '../../../tools/node');

const binary = join(process.env['UNBOUNDED_ASSETS'] ?? join(homedir(), '.cache/unbounded/bin'), 'wireguard-go');

let directory: string;
let ns: Netns;
let net: RouteSocket;
let children: ChildProcess[];

beforeEach(async () => {
  if (!existsSync(binary)) throw new Error(`${binary} is missing: run tools/assets/build wireguard-go`);
  directory = mkdtempSync(join(tmpdir(), 'wg-'));
  ns = createNetns();
  net = createRouteSocket({ netnsFd: ns.fd });
  children = [];
  await net.links.modify('lo', { up: true });
});

afterEach(async () => {
  await Promise.all(children.map((child) => end(child)));
  net.close();
  ns.close();
  rmSync(directory, { recursive: true });
});

const end = async (child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
};

const socketOf = (name: string): string => join(directory, `${name}.sock`);

/** Resolves when the control socket answers. */
const start = async (name: string, where: Netns = ns): Promise<ChildProcess> => {
  rmSync(socketOf(name), { force: true });
  const appeared = new Promise<void>((resolve) => {
    const watcher = watch(directory, () => {
      if (!existsSync(socketOf(name))) return;
      watcher.close();
      resolve();
    });
  });
  const child = spawn('nsenter', [`--net=${where.path}`, binary, '-f', name], {
    env: { ...process.env, WG_UAPI_DIR: directory },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  children.push(child);
  await Promise.race([
    appeared,
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`wireguard-go ended with ${code}`))),
  ]);
  return child;
};

const inNetns = (...command: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...command], { encoding: 'utf8' });

test('public keys are those that `wg pubkey` makes', () => {
  for (let index = 0; index < 5; index++) {
    const key = generatePrivateKey();
    expect(publicKeyOf(key)).toBe(execFileSync('wg', ['pubkey'], { input: `${key}\n`, encoding: 'utf8' }).trim());
  }
});

describe('wireguard-go on a TUN that outlives it', () => {
  test('a diff applied is nothing to do afterwards, and every field reads back', async () => {
    createTun({ name: 'wg0', netnsFd: ns.fd });
    await start('wg0');
    await using device = openUserspaceDevice('wg0', { socketPath: socketOf('wg0') });
    const peer = publicKeyOf(generatePrivateKey());
    const desired: DeviceSpec = {
      privateKey: generatePrivateKey(),
      listenPort: 51820,
      fwmark: 0x200,
      peers: [
        {
          publicKey: peer,
          endpoint: '[2001:db8::1]:51821',
          allowedIps: ['100.64.1.0/24', 'fd00:1::/64'],
          persistentKeepaliveSeconds: 25,
        },
      ],
    };
    const change = diffDevice(await device.get(), desired);
    if (change) await device.apply(change);
    const state = await device.get();
    expect(state).toMatchObject({ publicKey: publicKeyOf(desired.privateKey), listenPort: 51820, fwmark: 0x200 });
    expect(state.peers).toMatchObject([
      { publicKey: peer, endpoint: '[2001:db8::1]:51821', persistentKeepaliveSeconds: 25, rxBytes: 0 },
    ]);
    expect([...(state.peers[0]?.allowedIps ?? [])].sort()).toEqual(['100.64.1.0/24', 'fd00:1::/64']);
    expect(diffDevice(state, desired)).toBeUndefined();
  });

  test('killed, it leaves link, MTU, addresses and routes, and its successor attaches to the same link', async () => {
    createTun({ name: 'wg0', netnsFd: ns.fd });
    const first = await start('wg0');
    const before = await net.links.get('wg0');
    if (!before) throw new Error('the TUN is gone');
    await net.links.modify(before.index, { mtu: 1380, up: true });
    await net.addresses.replace({ link: before.index, address: '100.64.1.1/32' });
    await net.routes.replace({ dst: '100.64.2.0/24', link: before.index });

    await end(first);
    expect(await net.links.get('wg0')).toMatchObject({ index: before.index, mtu: 1380, up: true });
    expect(await net.addresses.list({ link: before.index, family: 4 })).toMatchObject([{ address: '100.64.1.1/32' }]);
    expect(await net.routes.list({ family: 4, table: 254 })).toMatchObject([
      { dst: '100.64.2.0/24', link: before.index },
    ]);

    await start('wg0');
    await using device = openUserspaceDevice('wg0', { socketPath: socketOf('wg0') });
    expect((await device.get()).peers).toEqual([]);
    expect(await net.links.get('wg0')).toMatchObject({ index: before.index, mtu: 1380, up: true });
  });

  /** Two devices in two network namespaces, of which only the first knows where the other is. */
  interface Pair extends AsyncDisposable {
    readonly far: Netns;
    readonly a: WireGuardDevice;
    readonly b: WireGuardDevice;
    readonly specB: DeviceSpec;
  }
  const OVERLAY = { a: ['100.64.0.1/32', 'fd00::1/128'], b: ['100.64.0.2/32', 'fd00::2/128'] } as const;

  const connect = async (): Promise<Pair> => {
    await using stack = new AsyncDisposableStack();
    const keys = { a: generatePrivateKey(), b: generatePrivateKey() };
    const far = stack.use(createNetns());
    await using farNet = createRouteSocket({ netnsFd: far.fd });
    await net.links.create({ name: 'u0', kind: { kind: 'veth', peer: { name: 'u1', netnsFd: far.fd } }, up: true });
    await farNet.links.modify('u1', { up: true });
    const [u0, u1] = [await net.links.get('u0'), await farNet.links.get('u1')];
    if (!u0 || !u1) throw new Error('the veth pair is not there');
    await net.addresses.replace({ link: u0.index, address: '192.0.2.1/24' });
    await farNet.addresses.replace({ link: u1.index, address: '192.0.2.2/24' });

    const sides = [
      { name: 'wga', where: ns, there: net, own: OVERLAY.a, other: OVERLAY.b },
      { name: 'wgb', where: far, there: farNet, own: OVERLAY.b, other: OVERLAY.a },
    ];
    for (const { name, where, there, own, other } of sides) {
      createTun({ name, netnsFd: where.fd });
      await start(name, where);
      const link = await there.links.get(name);
      if (!link) throw new Error('the TUN is gone');
      await there.links.modify(link.index, { up: true });
      for (const address of own) await there.addresses.replace({ link: link.index, address });
      for (const dst of other) await there.routes.replace({ dst, link: link.index });
    }
    const a = stack.use(openUserspaceDevice('wga', { socketPath: socketOf('wga') }));
    const b = stack.use(openUserspaceDevice('wgb', { socketPath: socketOf('wgb') }));
    const specA: DeviceSpec = {
      privateKey: keys.a,
      listenPort: 51820,
      peers: [{ publicKey: publicKeyOf(keys.b), endpoint: '192.0.2.2:51820', allowedIps: [...OVERLAY.b] }],
    };
    const specB: DeviceSpec = {
      privateKey: keys.b,
      listenPort: 51820,
      peers: [{ publicKey: publicKeyOf(keys.a), allowedIps: [...OVERLAY.a] }],
    };
    for (const [device, spec] of [
      [a, specA],
      [b, specB],
    ] as const) {
      const change = diffDevice(await device.get(), spec);
      if (change) await device.apply(change);
    }
    const all = stack.move();
    return { far, a, b, specB, [Symbol.asyncDispose]: () => all.disposeAsync() };
  };

  test('two devices shake hands and carry packets; a peer without wanted endpoint keeps the one it learned', async () => {
    await using pair = await connect();
    const { b, specB } = pair;
    inNetns('ping', '-c1', '-W5', '100.64.0.2');
    const learned = await b.get();
    expect(learned.peers[0]).toMatchObject({ endpoint: '192.0.2.1:51820' });
    expect(learned.peers[0]?.latestHandshakeMs).toBeGreaterThan(Date.now() - 60_000);
    expect(learned.peers[0]?.rxBytes).toBeGreaterThan(0);
    expect(diffDevice(learned, specB)).toBeUndefined();
  });

  /** The tunnel to owners of egress addresses: VXLAN through the devices, in which packets of pods are. */
  const addEgressTunnels = (far: Netns): void => {
    const inFar = (...argv: string[]): unknown => inNetns('nsenter', `--net=${far.path}`, ...argv);
    for (const [run, own, other] of [
      [inNetns, 1, 2],
      [inFar, 2, 1],
    ] as const) {
      const ends = ['local', `100.64.0.${own}`, 'remote', `100.64.0.${other}`];
      run('ip', 'link', 'add', 'egress0', 'type', 'vxlan', 'id', '2', 'dstport', '9996', ...ends);
      run('ip', 'addr', 'add', `fd01::${own}/64`, 'dev', 'egress0', 'nodad');
      run('ip', 'link', 'set', 'egress0', 'up');
    }
  };

  test.each([
    ['in a device', 'fd00', () => undefined],
    ['in a tunnel to an egress owner', 'fd01', addEgressTunnels],
  ])(
    'a datagram over IPv6 whose checksum comes out as 0 arrives, as one of the 65,536 around it: %s',
    async (_, net, prepare) => {
      await using pair = await connect();
      prepare(pair.far);
      inNetns('ping', '-6', '-c1', '-W5', `${net}::2`);
      const receive = `
      const socket = require('node:dgram').createSocket('udp6', ({ length }) => (console.log(length), process.exit(0)));
      socket.bind(9000, '${net}::2', () => console.log('bound'));`;
      // Source and destination address, length twice, next header, both ports: what is left to ffff makes the sum 0.
      const prefix = Number.parseInt(net, 16);
      const words = [prefix, 0x0001, prefix, 0x0002, 10, 17, 9001, 9000, 10];
      const total = words.reduce((sum, word) => sum + word, 0);
      const rest = 0xffff - ((total & 0xffff) + (total >>> 16));
      const send = `
      const socket = require('node:dgram').createSocket('udp6');
      socket.bind(9001, '${net}::1', () =>
        socket.send(Buffer.from([${rest >>> 8}, ${rest & 0xff}]), 9000, '${net}::2', () => process.exit(0)));`;
      const receiver = spawn('nsenter', [`--net=${pair.far.path}`, NODE, '-e', receive], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      children.push(receiver);
      const lines = createInterface({ input: receiver.stdout })[Symbol.asyncIterator]();
      expect((await lines.next()).value).toBe('bound');
      inNetns(NODE, '-e', send);
      expect((await lines.next()).value).toBe('2');
    },
  );

  test('a refused change names the device and holds no key', async () => {
    createTun({ name: 'wg0', netnsFd: ns.fd });
    await start('wg0');
    await using device = openUserspaceDevice('wg0', { socketPath: socketOf('wg0') });
    const key = generatePrivateKey();
    const refused = device.apply({
      privateKey: key,
      peers: [
        {
          op: 'add',
          publicKey: publicKeyOf(key),
          endpoint: '192.0.2.1:1',
          persistentKeepaliveSeconds: 99_999,
          allowedIps: [],
        },
      ],
    });
    await expect(refused).rejects.toMatchObject({
      name: 'WireGuardError',
      reason: 'refused',
      message: 'change device wg0: EINVAL',
    });
  });
});
