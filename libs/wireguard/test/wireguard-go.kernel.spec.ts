import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, watch } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';

import { createNetns, createRouteSocket, createTun, type Netns, type RouteSocket } from '@unbounded/netlink';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { type DeviceSpec, diffDevice, generatePrivateKey, openUserspaceDevice, publicKeyOf } from '../src/index.ts';

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
const start = async (name: string): Promise<ChildProcess> => {
  rmSync(socketOf(name), { force: true });
  const appeared = new Promise<void>((resolve) => {
    const watcher = watch(directory, () => {
      if (!existsSync(socketOf(name))) return;
      watcher.close();
      resolve();
    });
  });
  const child = spawn('nsenter', [`--net=${ns.path}`, binary, '-f', name], {
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

  test('two devices shake hands and carry packets; a peer without wanted endpoint keeps the one it learned', async () => {
    const keys = { a: generatePrivateKey(), b: generatePrivateKey() };
    using far = createNetns();
    await using farNet = createRouteSocket({ netnsFd: far.fd });
    await net.links.create({ name: 'u0', kind: { kind: 'veth', peer: { name: 'u1', netnsFd: far.fd } }, up: true });
    await farNet.links.modify('u1', { up: true });
    const [u0, u1] = [await net.links.get('u0'), await farNet.links.get('u1')];
    if (!u0 || !u1) throw new Error('the veth pair is not there');
    await net.addresses.replace({ link: u0.index, address: '192.0.2.1/24' });
    await farNet.addresses.replace({ link: u1.index, address: '192.0.2.2/24' });

    const devices: Record<'a' | 'b', { ns: Netns; net: RouteSocket; overlay: string; other: string }> = {
      a: { ns, net, overlay: '100.64.0.1', other: '100.64.0.2' },
      b: { ns: far, net: farNet, overlay: '100.64.0.2', other: '100.64.0.1' },
    };
    const near = ns;
    for (const side of ['a', 'b'] as const) {
      const { ns: where, net: there, overlay, other } = devices[side];
      createTun({ name: `wg${side}`, netnsFd: where.fd });
      ns = where;
      try {
        await start(`wg${side}`);
      } finally {
        ns = near;
      }
      const link = await there.links.get(`wg${side}`);
      if (!link) throw new Error('the TUN is gone');
      await there.links.modify(link.index, { up: true });
      await there.addresses.replace({ link: link.index, address: `${overlay}/32` });
      await there.routes.replace({ dst: `${other}/32`, link: link.index });
    }
    await using a = openUserspaceDevice('wga', { socketPath: socketOf('wga') });
    await using b = openUserspaceDevice('wgb', { socketPath: socketOf('wgb') });
    const specA: DeviceSpec = {
      privateKey: keys.a,
      listenPort: 51820,
      peers: [{ publicKey: publicKeyOf(keys.b), endpoint: '192.0.2.2:51820', allowedIps: ['100.64.0.2/32'] }],
    };
    const specB: DeviceSpec = {
      privateKey: keys.b,
      listenPort: 51820,
      peers: [{ publicKey: publicKeyOf(keys.a), allowedIps: ['100.64.0.1/32'] }],
    };
    for (const [device, spec] of [
      [a, specA],
      [b, specB],
    ] as const) {
      const change = diffDevice(await device.get(), spec);
      if (change) await device.apply(change);
    }
    inNetns('ping', '-c1', '-W5', '100.64.0.2');
    const learned = await b.get();
    expect(learned.peers[0]).toMatchObject({ endpoint: '192.0.2.1:51820' });
    expect(learned.peers[0]?.latestHandshakeMs).toBeGreaterThan(Date.now() - 60_000);
    expect(learned.peers[0]?.rxBytes).toBeGreaterThan(0);
    expect(diffDevice(learned, specB)).toBeUndefined();
  });

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
