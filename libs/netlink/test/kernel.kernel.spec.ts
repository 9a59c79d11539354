import { execFileSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';
import { join } from 'node:path';

import { until } from '@unbounded/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import {
  createGenericSocket,
  createNetns,
  createRouteSocket,
  createTun,
  NetlinkDecodeError,
  NetlinkError,
  NetlinkSocket,
  type Netns,
  PROTOCOL,
  type RouteEvent,
  type RouteSocket,
} from '../src/index.ts';
import { addon } from '../src/native.ts';

/** linux/rtnetlink.h */
const RTNLGRP_LINK = 1;
const NODE = join(import.meta.dirname, '../../../tools/node');

let ns: Netns;
let net: RouteSocket;

beforeEach(async () => {
  ns = createNetns();
  net = createRouteSocket({ netnsFd: ns.fd });
  await net.links.modify('lo', { up: true });
});
afterEach(() => {
  net.close();
  ns.close();
});

const inNetns = (...command: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...command], { encoding: 'utf8' });

/** A pair that is up on both ends, with 192.0.2.1/24 on the first. */
const pair = async (): Promise<number> => {
  const link = await net.links.create({ name: 'va', kind: { kind: 'veth', peer: { name: 'vb' } }, up: true });
  await net.links.modify('vb', { up: true });
  await net.addresses.replace({ link: link.index, address: '192.0.2.1/24' });
  return link.index;
};

describe('links', () => {
  test('are created as iproute2 shows them, changed and deleted', async () => {
    const link = await net.links.create({
      name: 'vx0',
      kind: { kind: 'vxlan', external: true, port: 4789, learning: false, udp6ZeroChecksumRx: true },
      mac: '02:0a:01:00:01:ff',
      mtu: 1450,
      up: true,
      arp: false,
      alias: 'ours',
    });
    expect(link).toMatchObject({
      name: 'vx0',
      mtu: 1450,
      up: true,
      arp: false,
      alias: 'ours',
      mac: '02:0a:01:00:01:ff',
      kind: { kind: 'vxlan', external: true, port: 4789, udp6ZeroChecksumRx: true },
    });
    expect(inNetns('ip', '-d', 'link', 'show', 'vx0')).toMatch(
      /vxlan external.*dstport 4789 nolearning.*udp6zerocsumrx/s,
    );
    await net.links.modify('vx0', { mtu: 1400, txQueuePackets: 700, name: 'vx1', alias: '' });
    expect(await net.links.get(link.index)).toMatchObject({ name: 'vx1', mtu: 1400, txQueuePackets: 700 });
    await net.links.delete('vx1');
    expect(await net.links.get('vx1')).toBeUndefined();
  });

  test('of a kind without module name the kernel’s own reason', async () => {
    const refused = net.links.create({ name: 'g0', kind: { kind: 'geneve', external: true, port: 6081 } });
    // Where the module is there this proves nothing: then a link that exists must be refused.
    await refused.then(
      () => expect(net.links.create({ name: 'g0', kind: { kind: 'dummy' } })).rejects.toMatchObject({ code: 'EEXIST' }),
      (error: unknown) =>
        expect(error).toMatchObject({
          name: 'NetlinkError',
          code: 'ENOTSUP',
          extack: 'Unknown device type',
          what: 'create link g0 (geneve)',
        }),
    );
  });

  test('born in another namespace are found there', async () => {
    using other = createNetns();
    const link = await net.links.create({ name: 'p0', kind: { kind: 'ifb' }, netnsFd: other.fd, alias: 'there' });
    expect(link).toMatchObject({ name: 'p0', alias: 'there' });
    expect(await net.links.get('p0')).toBeUndefined();
  });

  test('a bridge has the settings that it is given, at birth and later', async () => {
    const kind = {
      kind: 'bridge',
      stp: false,
      multicastSnooping: false,
      linkLocalLearning: false,
      groupForwardMask: 0xfff8,
    } as const;
    const bridge = await net.links.create({ name: 'b0', kind });
    expect(bridge.kind).toEqual(kind);
    expect(inNetns('ip', '-d', 'link', 'show', 'b0')).toMatch(
      /stp_state 0 .*group_fwd_mask 0xfff8 .*mcast_snooping 0.* no_linklocal_learn 1/s,
    );
    const other = {
      kind: 'bridge',
      stp: true,
      multicastSnooping: true,
      linkLocalLearning: true,
      groupForwardMask: 8,
    } as const;
    await net.links.modify('b0', { kind: other });
    expect((await net.links.get('b0'))?.kind).toEqual(other);
  });

  test('the other end of a pair is read where it is, by the number of its namespace', async () => {
    using other = createNetns();
    const peer = { name: 'eth0', mac: '02:00:00:00:00:77', netnsFd: other.fd };
    await net.links.create({ name: 'v0', kind: { kind: 'veth', peer } });
    const { parent, parentNetnsId: netnsId } = (await net.links.get('v0'))!;
    expect(await net.links.get(parent!, { netnsId: netnsId! })).toMatchObject({ name: 'eth0', mac: peer.mac });
    await expect(net.links.get(parent!, { netnsId: 4711 })).rejects.toMatchObject({ code: 'EINVAL' });
  });

  test('a persistent TUN is adopted when nobody holds it, and refused under a name that another kind has', async () => {
    createTun({ name: 't0', netnsFd: ns.fd });
    createTun({ name: 't0', netnsFd: ns.fd });
    expect(await net.links.get('t0')).toMatchObject({
      kind: { kind: 'tun', mode: 'tun', persistent: true, vnetHeader: true, packetInfo: false },
    });
    await net.links.create({ name: 'b0', kind: { kind: 'bridge' } });
    expect(() => createTun({ name: 'b0', netnsFd: ns.fd })).toThrow(expect.objectContaining({ code: 'EINVAL' }));
    await net.links.delete('t0');
    expect(await net.links.get('t0')).toBeUndefined();
  });
});

describe('what can be listed', () => {
  test('routes: written, replaced, listed by table, deleted by what is given', async () => {
    const link = await pair();
    await net.routes.replace({ dst: '100.64.0.0/16', link, table: 1000, metric: 10, protocol: 81, mtu: 1400 });
    await net.routes.replace({ dst: '100.64.0.0/16', gateway: '192.0.2.2', table: 1000, metric: 10, protocol: 81 });
    expect(await net.routes.list({ table: 1000 })).toEqual([
      {
        family: 4,
        dst: '100.64.0.0/16',
        table: 1000,
        metric: 10,
        protocol: 81,
        scope: 'global',
        type: 'unicast',
        flags: 0,
        link,
        gateway: '192.0.2.2',
      },
    ]);
    await expect(net.routes.create({ dst: '100.64.0.0/16', link, table: 1000, metric: 10 })).rejects.toMatchObject({
      code: 'EEXIST',
    });
    await net.routes.delete({ dst: '100.64.0.0/16', table: 1000 });
    await expect(net.routes.delete({ dst: '100.64.0.0/16', table: 1000 })).rejects.toMatchObject({
      code: 'ESRCH',
      what: 'delete route 100.64.0.0/16 table 1000',
    });
    expect(await net.routes.list({ table: 4711 })).toEqual([]);
  });

  const manyRoutes = (count: number, linkOf: (index: number) => number) =>
    Array.from({ length: count }, (_, index) => ({
      op: 'create' as const,
      value: { dst: `100.64.${index >> 8}.${index & 255}/32`, link: linkOf(index), table: 500 },
    }));

  test('a batch goes on behind refusals and says which ones they were', async () => {
    const link = await pair();
    const refused = [0, 255, 256, 500, 501, 998, 999]; // also the first and the last of a packet of 256
    const results = await net.routes.apply(manyRoutes(1000, (index) => (refused.includes(index) ? 9999 : link)));
    expect(results.flatMap(({ ok }, index) => (ok ? [] : [index]))).toEqual(refused);
    expect(results[500]).toMatchObject({
      ok: false,
      error: { code: 'ENODEV', what: 'create route 100.64.1.244/32 table 500' },
    });
    expect(await net.routes.list({ family: 4, table: 500 })).toHaveLength(1000 - refused.length);
  });

  test('no refusal is taken for a success when the answers do not fit the socket', async () => {
    await using small = createRouteSocket({ netnsFd: ns.fd, receiveBufferBytes: 8192 });
    const results = await small.routes.apply(manyRoutes(3000, () => 9999));
    expect(results.filter(({ ok }) => ok)).toEqual([]);
    const codes = new Set(results.map((result) => (result.ok ? 'ok' : result.error.code)));
    expect([...codes].sort()).toEqual(['ENOBUFS', 'ENODEV']);
    await expect(small.links.get('lo')).resolves.toMatchObject({ name: 'lo' });
  });

  test('nexthop groups, and routes over them', async () => {
    const link = await pair();
    await net.nexthops.replace({ id: 11, link, gateway: '192.0.2.2', protocol: 81 });
    await net.nexthops.replace({ id: 12, link, gateway: '192.0.2.3', protocol: 81 });
    await net.nexthops.replace({ id: 20, group: [{ id: 11, weight: 3 }, { id: 12 }], protocol: 81 });
    await net.routes.replace({ dst: '10.9.0.0/16', nexthopId: 20 });
    expect(await net.nexthops.list({ groupsOnly: true })).toMatchObject([
      {
        id: 20,
        group: [
          { id: 11, weight: 3 },
          { id: 12, weight: 1 },
        ],
      },
    ]);
    expect((await net.routes.list({ family: 4, table: 254 })).find(({ dst }) => dst === '10.9.0.0/16')).toMatchObject({
      nexthopId: 20,
    });
    await net.nexthops.delete({ id: 20 });
    expect((await net.routes.list({ family: 4, table: 254 })).some(({ dst }) => dst === '10.9.0.0/16')).toBe(false);
  });

  test('a rule for packets without a mark is read as it was written', async () => {
    const rule = {
      family: 4,
      priority: 101,
      table: 1001,
      mark: { value: 0, mask: 0x70 },
      src: '192.0.2.9/32',
    } as const;
    await net.rules.create(rule);
    expect(await net.rules.list({ family: 4 })).toContainEqual(expect.objectContaining(rule));
    await net.rules.delete(rule);
  });

  test.each(['192.0.2.99/32', '2001:db8::99/128'])(
    'an address with a maker, and no source for anybody: %s',
    async (address) => {
      const link = await pair();
      const own = { link, address, deprecated: true, protocol: 118 } as const;
      await net.addresses.replace(own);
      expect(await net.addresses.list({ link })).toContainEqual(expect.objectContaining(own));
      await net.addresses.delete(own);
      expect((await net.addresses.list({ link })).map((entry) => entry.address)).not.toContain(address);
    },
  );

  test('rules, neighbours, FDB entries and clsact', async () => {
    const link = await pair();
    const rule = {
      family: 4,
      priority: 100,
      table: 1000,
      mark: { value: 0x200, mask: 0xf00 },
      suppressPrefixLength: 0,
    } as const;
    await net.rules.create(rule);
    expect(await net.rules.list({ family: 4 })).toContainEqual(expect.objectContaining(rule));
    await net.rules.delete(rule);
    expect((await net.rules.list({ family: 4 })).some(({ priority }) => priority === 100)).toBe(false);

    await net.neighbours.replace({ family: 4, link, address: '192.0.2.9', mac: '02:00:00:00:00:09' });
    expect(await net.neighbours.list({ family: 4, link })).toMatchObject([
      { address: '192.0.2.9', mac: '02:00:00:00:00:09', state: 'permanent' },
    ]);

    const vxlan = await net.links.create({ name: 'vx0', kind: { kind: 'vxlan', vni: 7, port: 4789, learning: false } });
    await net.neighbours.replace({
      family: 'bridge',
      link: vxlan.index,
      mac: '02:00:00:00:00:01',
      address: '192.0.2.7',
    });
    expect(await net.neighbours.list({ family: 'bridge', link: vxlan.index })).toContainEqual(
      expect.objectContaining({ mac: '02:00:00:00:00:01', address: '192.0.2.7', state: 'permanent' }),
    );

    await net.trafficControl.ensureClsact(link);
    await net.trafficControl.ensureClsact(link);
    expect((await net.trafficControl.qdiscs(link)).map(({ kind }) => kind)).toContain('clsact');
    await net.trafficControl.deleteClsact(link);
    expect((await net.trafficControl.qdiscs(link)).map(({ kind }) => kind)).not.toContain('clsact');
  });

  test('generic families: the controller knows itself, and not what nobody brings', async () => {
    await using generic = createGenericSocket({ netnsFd: ns.fd });
    expect(await generic.resolve('nlctrl')).toMatchObject({ id: 16, name: 'nlctrl' });
    expect(await generic.resolve('no_such_family')).toBeUndefined();
  });
});

describe('the monitor', () => {
  test('tells of changes in order', async () => {
    const link = await pair();
    const events: RouteEvent[] = [];
    const last = Promise.withResolvers<void>();
    using monitor = net.monitor(['route', 'address', 'link'], {
      onEvent: (event) => {
        events.push(event);
        if (event.subject === 'link' && event.change === 'deleted') last.resolve();
      },
      onResync: () => last.reject(new Error('overflow')),
    });
    void monitor;
    await net.routes.create({ dst: '10.1.0.0/16', link });
    await net.routes.delete({ dst: '10.1.0.0/16' });
    await net.links.delete(link);
    await last.promise;
    expect(events.slice(0, 2)).toMatchObject([
      { subject: 'route', change: 'new', value: { dst: '10.1.0.0/16', link } },
      { subject: 'route', change: 'deleted', value: { dst: '10.1.0.0/16' } },
    ]);
  });

  test('tells of settings that change, of one device and of all, in both families', async () => {
    const link = await pair();
    const seen: string[] = [];
    using monitor = net.monitor(['netconf'], {
      onEvent: ({ value }) => void seen.push(JSON.stringify(value)),
      onResync: () => undefined,
    });
    void monitor;
    const { name } = (await net.links.get(link))!;
    for (const setting of [
      `net.ipv4.conf.${name}.rp_filter=1`,
      `net.ipv4.conf.${name}.forwarding=1`,
      'net.ipv4.ip_forward=1',
      'net.ipv6.conf.all.forwarding=1',
    ])
      execFileSync('nsenter', [`--net=${ns.path}`, 'sysctl', '-qw', setting]);
    const wanted = [
      { family: 4, link, rpFilter: 1 },
      { family: 4, link, forwarding: true },
      { family: 4, link: 'all', forwarding: true },
      { family: 6, link: 'all', forwarding: true },
    ].map((value) => JSON.stringify(value));
    await until('all are told', () => wanted.every((text) => seen.includes(text)));
    expect(seen).toEqual(expect.arrayContaining(wanted));
  });

  test('names the socket that asked for a change; the kernel itself has none', async () => {
    const link = await pair();
    const ports: number[] = [];
    using monitor = net.monitor(['rule'], { onEvent: ({ port }) => void ports.push(port), onResync: () => undefined });
    void monitor;
    await net.rules.create({ family: 4, priority: 99, table: 77 });
    await until('it is told', () => ports.length > 0);
    expect(ports[0]).toBeGreaterThan(0);
    await net.links.delete(link);
  });

  test('survives an overflow: it asks for a resync, and goes on to hear', async () => {
    const link = await pair();
    const resynced = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    const monitor = net.monitor(
      ['route'],
      {
        onEvent: ({ value }) => {
          if ('dst' in value && value.dst === '10.99.0.0/16') heard.resolve();
        },
        onResync: resynced.resolve,
      },
      { receiveBufferBytes: 8192 },
    );
    // From another process, while this one does not come to read.
    inNetns('sh', '-c', `for i in $(seq 0 255); do echo "route add 10.5.$i.0/24 dev va"; done | ip -batch -`);
    await resynced.promise;
    await net.routes.create({ dst: '10.99.0.0/16', link });
    await expect(heard.promise).resolves.toBeUndefined();
    monitor.close();
    monitor.close();
  });
});

describe('the socket', () => {
  test('whose reader cannot decode a message has missed it, and hears the next one', async () => {
    const missed = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<void>();
    let messages = 0;
    const socket = new NetlinkSocket({
      ...{ protocol: PROTOCOL.route, netnsFd: ns.fd },
      onEvent() {
        if (messages++ === 0) throw new NetlinkDecodeError('of a later kernel');
        heard.resolve();
      },
      onOverflow: missed.resolve,
      onError: missed.reject,
    });
    socket.join(RTNLGRP_LINK);
    inNetns('ip', 'link', 'add', 'one', 'type', 'bridge');
    await expect(missed.promise).resolves.toBeUndefined();
    inNetns('ip', 'link', 'add', 'two', 'type', 'bridge');
    await expect(heard.promise).resolves.toBeUndefined();
    socket.close();
  });

  test('closed, it fails what waits and refuses what comes', async () => {
    const waiting = net.links.list();
    net.close();
    await expect(waiting).rejects.toBeInstanceOf(Error);
    await expect(net.links.list()).rejects.toThrow('the netlink socket is closed');
  });

  test('a worker that ends with open sockets takes nothing down', async () => {
    const url = new URL('../src/index.ts', import.meta.url).href;
    const worker = new Worker(
      `import(${JSON.stringify(url)}).then(({ createRouteSocket }) => { const net = createRouteSocket(); net.monitor(['link'], { onEvent() {}, onResync() {} }); return net.links.list(); }).then(() => process.exit(0));`,
      { eval: true },
    );
    expect(await new Promise((resolve) => worker.once('exit', resolve))).toBe(0);
  });

  test.each<[string, (handle: unknown) => unknown, string]>([
    ['a handle that is none', () => addon().sendBytes({} as never, new Uint8Array(16)), 'TypeError'],
    ['bytes that are none', (handle) => addon().sendBytes(handle as never, 'text' as never), 'TypeError'],
    ['a group of -1', (handle) => addon().setMembership(handle as never, -1, true), 'TypeError'],
    ['too few arguments', (handle) => (addon().sendBytes as (a: unknown) => unknown)(handle), 'TypeError'],
    ['a protocol of 99', () => addon().openSocket(99, -1, 65536, () => {}), 'TypeError'],
    ['a callback that is none', () => addon().openSocket(0, -1, 65536, 1 as never), 'TypeError'],
    ['a name of 16 bytes', () => addon().createTun('a234567890123456', -1), 'TypeError'],
    ['a name with NUL', () => addon().createTun('a\0b', -1), 'TypeError'],
    ['an fd that is no namespace', () => addon().openSocket(0, 1, 65536, () => {}), 'Error'],
  ])('the addon refuses %s', (_, call, name) => {
    const handle = addon().openSocket(PROTOCOL.route, ns.fd, 65536, () => {});
    try {
      expect(() => call(handle)).toThrow(expect.objectContaining({ name }));
    } finally {
      addon().closeSocket(handle);
    }
    expect(() => addon().sendBytes(handle, new Uint8Array(16))).toThrow('the netlink socket is closed');
  });

  test('what is too large for the send buffer is refused with its errno', async () => {
    await using socket = new NetlinkSocket({ protocol: PROTOCOL.route, netnsFd: ns.fd, bufferBytes: 8192 });
    const [error] = await socket.transact([
      { type: 16, flags: 0, body: new Uint8Array(1 << 20), what: 'send too much' },
    ]);
    expect(error).toBeInstanceOf(NetlinkError);
    expect(error).toMatchObject({ code: 'EMSGSIZE', what: 'send too much' });
  });
});

test('a socket that watches opens without the right to enter namespaces', () => {
  const index = new URL('../src/index.ts', import.meta.url).href;
  const script = `const { createRouteSocket } = await import('${index}');
    const net = createRouteSocket();
    net.monitor(['link'], { onEvent() {}, onResync() {} }).close();
    net.close();`;
  const node = [NODE, '--input-type=module', '--eval', script];
  expect(() => execFileSync('setpriv', ['--bounding-set', '-sys_admin', ...node], { stdio: 'pipe' })).not.toThrow();
});
