import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNetns, type Netns, openPathSocket, openUdp, type PathDatagram, type PathSocket } from '../src/index.ts';

/** Two hosts with a router between them; in one of the tests it hides the first behind its own address. */

type Came = Required<PathDatagram>;
const HOSTS = { 4: ['10.0.1.1', '10.0.2.1'], 6: ['fd01::1', 'fd02::1'] } as const;
const PORT = 51_820;
const MAGIC = 0xf5_01_02_03;
const probe = (...rest: number[]): Uint8Array => Uint8Array.of(0xf5, 1, 2, 3, ...rest);
const PROBE = probe(4); // of an odd length

let undo: DisposableStack;
let hosts: [Netns, Netns];
let router: Netns;

const run = (netns: Netns, ...argv: string[]): void =>
  void execFileSync('nsenter', [`--net=${netns.path}`, ...argv], { stdio: ['ignore', 'ignore', 'inherit'] });
const ip = (netns: Netns, ...lines: readonly string[]): void =>
  void execFileSync('nsenter', [`--net=${netns.path}`, 'ip', '-batch', '-'], { input: lines.join('\n') });

beforeEach(() => {
  undo = new DisposableStack();
  const make = (): Netns => undo.use(createNetns());
  hosts = [make(), make()];
  router = make();
  const forwards = ['net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1'];
  for (const host of [router, ...hosts])
    run(host, 'sysctl', '-qw', 'net.ipv6.conf.default.accept_dad=0', ...(host === router ? forwards : []));
  for (const [index, host] of hosts.entries())
    ip(host, `link add wire type veth peer name wire${index} netns ${router.path}`);
  const gatewaysOf = (index: number): string[] =>
    [HOSTS[4][index]!, HOSTS[6][index]!].map((address) => address.replace(/1$/, '254'));
  ip(
    router,
    ...hosts.keys().flatMap((index) => {
      const [v4, v6] = gatewaysOf(index);
      return [
        `addr add ${v4}/24 dev wire${index}`,
        `addr add ${v6}/64 dev wire${index} nodad`,
        `link set wire${index} up`,
      ];
    }),
  );
  for (const [index, host] of hosts.entries())
    ip(
      host,
      `addr add ${HOSTS[4][index]}/24 dev wire`,
      `addr add ${HOSTS[6][index]}/64 dev wire nodad`,
      'link set lo up',
      'link set wire up',
      ...gatewaysOf(index).map((gateway) => `route add default via ${gateway}`),
    );
});
afterEach(() => undo.dispose());

/** What comes to a socket, in its order. */
const createMailbox = <T>() => {
  const [came, waiting]: [T[], ((one: T) => void)[]] = [[], []];
  return {
    put(one: T): void {
      const waits = waiting.shift();
      if (waits) waits(one);
      else came.push(one);
    },
    next: (): Promise<T> =>
      new Promise((resolve) => {
        if (came.length > 0) resolve(came.shift()!);
        else waiting.push(resolve);
      }),
    left: came,
  };
};

const openRaw = (
  host: Netns,
  family: 4 | 6,
): PathSocket & { readonly mail: ReturnType<typeof createMailbox<Came>> } => {
  const mail = createMailbox<Came>();
  return {
    ...undo.use(openPathSocket({ family, netnsFd: host.fd, magic: MAGIC, onDatagram: (one) => mail.put(one) })),
    mail,
  };
};

/** Who has the port, as WireGuard does. */
const occupy = (host: Netns, family: 4 | 6, port = PORT) => {
  const address = family === 4 ? '0.0.0.0' : '::';
  const mail = createMailbox<{ readonly bytes: Buffer; readonly port: number; readonly address: string }>();
  const socket: Socket = createSocket(family === 4 ? 'udp4' : 'udp6');
  socket.bind({ fd: openUdp({ address, port, netnsFd: host.fd }) });
  socket.on('message', (bytes, from) => mail.put({ bytes, port: from.port, address: from.address }));
  undo.defer(() => socket.close());
  return { socket, mail };
};

describe.each([4, 6] as const)('over IPv%d', (family) => {
  const [here, there] = HOSTS[family];
  const to = { address: there, port: PORT };

  test('a datagram leaves from a port that is taken, with a right checksum, and is heard beside who has the port there', async () => {
    occupy(hosts[0], family);
    const owner = occupy(hosts[1], family);
    const [sends, hears] = [openRaw(hosts[0], family), openRaw(hosts[1], family)];
    hears.setPorts([1, PORT]);
    expect(sends.send({ remote: to, localPort: PORT, bytes: PROBE })).toBe(0);
    expect(await hears.mail.next()).toEqual({
      remote: { address: here, port: PORT },
      localAddress: there,
      localPort: PORT,
      bytes: Buffer.from(PROBE),
    });
    expect(await owner.mail.next()).toEqual({ bytes: Buffer.from(PROBE), port: PORT, address: here }); // it checks the sum
  });

  test('what is to another port, or does not begin with the magic, ends in the filter', async () => {
    const [sends, hears] = [openRaw(hosts[0], family), openRaw(hosts[1], family)];
    const send = (port: number, bytes: Uint8Array): number =>
      sends.send({ remote: { address: there, port }, localPort: PORT, bytes });
    const owner = occupy(hosts[1], family);
    send(PORT, probe(1)); // before there is any port
    await owner.mail.next();
    hears.setPorts([PORT + 1, PORT]);
    for (const first of [0, 1, 4, 0x7f, 0x80, 0xf5, 0xff]) send(PORT, Uint8Array.of(first, 0xff, 0xff, 0xff));
    for (const almost of [[0xf5, 1, 2, 4], [0xf5, 1, 2], [0xf4, 1, 2, 3], []]) send(PORT, Uint8Array.from(almost));
    send(PORT + 2, probe(2));
    send(PORT + 1, probe(3));
    expect((await hears.mail.next()).bytes).toEqual(Buffer.from(probe(3)));
    hears.setPorts([PORT + 2]);
    send(PORT, probe(4));
    send(PORT + 2, probe(5));
    expect((await hears.mail.next()).bytes).toEqual(Buffer.from(probe(5)));
    expect(hears.mail.left).toEqual([]);
  });

  test('of a flood of foreign datagrams that begin with 0x80 and above none is read, and a probe among them is', async () => {
    const [sends, hears] = [openRaw(hosts[0], family), openRaw(hosts[1], family)];
    hears.setPorts([PORT]);
    const bytes = Buffer.alloc(1200, 0xff);
    for (let number = 0; number < 20_000; number++) {
      bytes[0] = 0x80 | (number & 0x7f);
      sends.send({ remote: to, localPort: PORT, bytes });
    }
    // The flood may have filled the kernel's queue, so one probe may be lost.
    const probing = setInterval(() => sends.send({ remote: to, localPort: PORT, bytes: PROBE }), 20);
    undo.defer(() => clearInterval(probing));
    for (let number = 0; number < 3; number++) expect((await hears.mail.next()).bytes).toEqual(Buffer.from(PROBE));
    expect(hears.mail.left.filter(({ bytes: read }) => !Buffer.from(PROBE).equals(read))).toEqual([]);
  });

  test('an answer leaves from the address that the question came to', async () => {
    const second = family === 4 ? '10.0.2.2' : 'fd02::2';
    ip(hosts[1], `addr add ${second}/${family === 4 ? 24 : 64} dev wire${family === 6 ? ' nodad' : ''}`);
    const [asks, answers] = [openRaw(hosts[0], family), openRaw(hosts[1], family)];
    for (const socket of [asks, answers]) socket.setPorts([PORT]);
    asks.send({ remote: { address: second, port: PORT }, localPort: PORT, bytes: PROBE });
    const question = await answers.mail.next();
    expect(question.localAddress).toBe(second);
    expect(answers.send({ ...question, bytes: probe(0xf6) })).toBe(0);
    expect((await asks.mail.next()).remote).toEqual({ address: second, port: PORT });
  });

  test('a masquerading router gives the probe the mapping that WireGuard’s packets have', async () => {
    run(router, 'nft', 'add table inet nat');
    run(router, 'nft', 'add chain inet nat out { type nat hook postrouting priority 100; }');
    run(router, 'nft', 'add rule inet nat out oifname wire1 meta l4proto udp masquerade fully-random');
    const [wireGuard, peer] = [occupy(hosts[0], family), occupy(hosts[1], family)];
    const [probes, hears] = [openRaw(hosts[0], family), openRaw(hosts[1], family)];
    for (const socket of [probes, hears]) socket.setPorts([PORT]);
    wireGuard.socket.send(Buffer.from([4, 0, 0, 0]), PORT, there);
    const mapped = await peer.mail.next();
    expect(probes.send({ remote: to, localPort: PORT, bytes: PROBE })).toBe(0);
    const came = await hears.mail.next();
    console.log(`IPv${family}: WireGuard's packet and the probe both come from ${mapped.address} port ${mapped.port}`);
    expect(came.remote).toEqual({ address: mapped.address, port: mapped.port });
    expect(mapped.address).not.toBe(here);
    expect(mapped.port).not.toBe(PORT);
    hears.send({ ...came, bytes: probe(0xf6) });
    expect((await probes.mail.next()).bytes).toEqual(Buffer.from(probe(0xf6))); // and the answer finds back
  });

  test('the kernel’s refusals are told, and nonsense is refused', () => {
    const socket = openRaw(hosts[0], family);
    run(hosts[0], 'ip', family === 4 ? '-4' : '-6', 'route', 'del', 'default');
    const code = socket.send({ remote: to, localPort: PORT, bytes: PROBE });
    expect(code).toBe(101); // ENETUNREACH
    expect(() => socket.send({ remote: to, localPort: 0, bytes: PROBE })).toThrow('port is 0');
    expect(() => socket.send({ remote: to, localPort: PORT, bytes: new Uint8Array(2049) })).toThrow('2048 bytes');
    const other = HOSTS[family === 4 ? 6 : 4][1];
    expect(() => socket.send({ remote: { address: other, port: 1 }, localPort: PORT, bytes: PROBE })).toThrow('family');
    expect(() => socket.setPorts(Array.from({ length: 2001 }, (_, index) => index + 1))).toThrow('E2BIG');
    socket.close();
    socket.close();
    expect(() => socket.setPorts([1])).toThrow('closed');
  });
});

/**
 * Sends numbered datagrams until so many are at the other host's sockets, before the loop turns: a kernel thread may
 * bring them later than they are sent, and the queue between namespaces is one per processor, which others fill, too.
 * Returns how many the socket holds: raw sockets get a datagram before UDP finds that nobody has its port.
 */
const fillSocket = (sends: PathSocket, wanted: number): number => {
  const delivered = (): number => {
    const text = execFileSync('nsenter', [`--net=${hosts[1].path}`, 'cat', '/proc/net/snmp'], { encoding: 'utf8' });
    return Number(/^Udp: \d+ (\d+)/m.exec(text)![1]);
  };
  const bytes = Buffer.alloc(64, 0xff);
  bytes.set(probe());
  let number = 0;
  while (delivered() < wanted)
    for (const end = number + 100; number < end; number++) {
      bytes.writeUInt32BE(number, 4);
      expect(sends.send({ remote: { address: HOSTS[4][1], port: PORT }, localPort: PORT, bytes })).toBe(0);
    }
  let held: number;
  do held = delivered();
  while (held !== delivered());
  return held;
};

test('as many ports as there may be are listened at, and others after them, by a kernel that gives a socket 20 KiB for its filter', async () => {
  const [from, to] = hosts;
  const file = '/proc/sys/net/core/optmem_max'; // of a namespace since Linux 6.9
  run(to, 'sh', '-c', `[ ! -e ${file} ] || echo 20480 > ${file}`); // as before 6.7
  const [sends, hears] = [openRaw(from, 4), openRaw(to, 4)];
  for (const first of [10_000, 20_000]) {
    const ports = Array.from({ length: 2000 }, (_, index) => first + index);
    expect(() => hears.setPorts(ports)).not.toThrow();
    const heard = [first, first + 199, first + 200, first + 1234, first + 1999];
    for (const port of [first - 1, ...heard, first + 2000])
      sends.send({ remote: { address: HOSTS[4][1], port }, localPort: PORT, bytes: probe(port % 256) });
    for (const port of heard) expect((await hears.mail.next()).localPort).toBe(port);
  }
  expect(hears.mail.left).toEqual([]);
});

test('a thousand datagrams that come at once are given in batches, none twice and all in order', async () => {
  const [sends, hears] = [openRaw(hosts[0], 4), openRaw(hosts[1], 4)];
  hears.setPorts([PORT]);
  const held = fillSocket(sends, 1000);
  for (let [seen, last] = [0, -1]; seen < held; seen++) {
    const number = Buffer.from((await hears.mail.next()).bytes).readUInt32BE(4);
    expect(number).toBeGreaterThan(last);
    last = number;
  }
});

test('at most 256 datagrams are read in a turn of the loop, so that a flood leaves the thread its timers', async () => {
  const [sends, hears] = [openRaw(hosts[0], 4), openRaw(hosts[1], 4)];
  hears.setPorts([PORT]);
  const held = fillSocket(sends, 600);
  const turns: number[] = [];
  for (let seen = 0; seen < held; seen = hears.mail.left.length) {
    await new Promise((resolve) => setImmediate(resolve));
    turns.push(hears.mail.left.length - seen);
  }
  expect(Math.max(...turns)).toBe(256);
});
