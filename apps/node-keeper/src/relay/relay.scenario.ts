import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nodeCommand } from '@unbounded/config/node-command';
import { appEntry } from '@unbounded/testing';
import {
  rejections,
  relayState,
  type RelayState,
  relayTallies,
  type RelayTallies,
  type RelayUnit,
} from '@unbounded/keeper-protocol';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';

/** A node whose keeper runs the relay's proxies, for the tests: real processes, and a socket where WireGuard would listen. */

export interface OwnKey {
  readonly publicKey: string;
  readonly privateKey: string;
  readonly file: string;
}

export interface StandIn {
  readonly port: number;
  readonly got: { readonly text: string; readonly from: number }[];
  send(text: string, port: number): void;
  onPacket(handler: (text: string) => void): void;
}

/** As wireguard-go asks for; the kernel gives what its limit allows. */
const RECEIVE_BUFFER_BYTES = 7 << 20;

/** What Node has compiled is kept between tests: half of the processor time of a start. */
const { NODE_COMPILE_CACHE } = process.env;

const openStandIn = async (): Promise<StandIn & { readonly socket: Socket }> => {
  const socket = createSocket({ type: 'udp4', recvBufferSize: RECEIVE_BUFFER_BYTES });
  const got: StandIn['got'] = [];
  socket.on('message', (bytes, { port }) => got.push({ text: bytes.toString(), from: port }));
  socket.on('error', () => undefined);
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    socket,
    port: socket.address().port,
    got,
    send: (text, port) => socket.send(text, port, '127.0.0.1'),
    onPacket: (handler) => void socket.on('message', (bytes) => handler(bytes.toString())),
  };
};

export class RelayNode {
  readonly name: string;
  readonly folder = mkdtempSync(join(tmpdir(), 'relay-'));
  readonly unitFile = join(this.folder, 'relay.json');
  readonly stateFile = join(this.folder, 'relay-state.json');
  readonly log: string[] = [];
  readonly #keys: OwnKey[] = [];
  readonly #sockets: Socket[] = [];
  #keeper: ChildProcess | undefined;

  constructor(name: string) {
    this.name = `${name}-${process.pid}`;
  }

  /** A key in the folder of keys. */
  newKey(): OwnKey {
    const privateKey = generatePrivateKey();
    const file = `/etc/wireguard/${this.name}-${this.#keys.length}.priv`;
    writeFileSync(file, privateKey, { mode: 0o600 });
    const key = { publicKey: publicKeyOf(privateKey), privateKey, file };
    this.#keys.push(key);
    return key;
  }

  /** Where WireGuard would listen. */
  async wireGuard(): Promise<StandIn> {
    const standIn = await openStandIn();
    this.#sockets.push(standIn.socket);
    return standIn;
  }

  startKeeper(): void {
    const folders = ['--units-dir', join(this.folder, 'units'), '--pids-dir', join(this.folder, 'pids')];
    const [node, ...options] = nodeCommand;
    const child = spawn(node, [...options, appEntry('node-keeper'), ...folders], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...{ PATH: process.env['PATH'], KUBECONFIG: '/nonexistent', SECRET_TOKEN: 'do not pass on' },
        ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
      },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => this.log.push(text));
    this.#keeper = child;
  }

  /** At once; nobody reads its log, and that of its processes, any more. */
  async killKeeper(): Promise<void> {
    const keeper = this.#keeper!;
    keeper.kill('SIGKILL');
    await once(keeper, 'exit');
    keeper.stdout!.destroy();
    keeper.stderr!.destroy();
  }

  write(unit: unknown): void {
    writeFileSync(`${this.unitFile}.new`, typeof unit === 'string' ? unit : JSON.stringify(unit));
    renameSync(`${this.unitFile}.new`, this.unitFile);
  }

  /** As the agent finds them. */
  get rejections(): readonly string[] {
    const file = join(this.folder, 'rejected.json');
    return existsSync(file) ? rejections.read(file) : [];
  }

  get state(): RelayState | undefined {
    return existsSync(this.stateFile) ? relayState.read(this.stateFile) : undefined;
  }

  get tallies(): RelayTallies | undefined {
    const file = join(this.folder, 'relay-tallies.json');
    return existsSync(file) ? relayTallies.read(file) : undefined;
  }

  portOf(own: OwnKey, peer: OwnKey): number | undefined {
    return this.state?.proxies.find((proxy) => proxy.own === own.publicKey && proxy.peer === peer.publicKey)?.port;
  }

  get isConnected(): boolean {
    return this.state?.relays.some(({ connected }) => connected) ?? false;
  }

  /** Of the proxies' process. */
  get pid(): number {
    return Number(readFileSync(join(this.folder, 'pids/relay'), 'utf8').split(' ')[0]);
  }

  async close(): Promise<void> {
    const pid = existsSync(join(this.folder, 'pids/relay')) ? this.pid : 0;
    rmSync(this.unitFile, { force: true });
    while (pid > 0 && isAlive(pid)) await delay(20); // without their unit they end by themselves
    if (this.#keeper && this.#keeper.exitCode === null && this.#keeper.signalCode === null) {
      this.#keeper.kill('SIGKILL');
      await once(this.#keeper, 'exit');
    }
    for (const socket of this.#sockets) socket.close();
    for (const { file } of this.#keys) rmSync(file, { force: true });
    rmSync(this.folder, { recursive: true });
  }
}

/** Whether there is such a process, and it is no zombie. */
export const isAlive = (pid: number): boolean => {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '')[0] !== 'Z';
  } catch {
    return false;
  }
};

/** A unit for identities with one peer each. */
export const unitOf = (
  relayPorts: number | readonly number[],
  ...identities: { readonly own: OwnKey; readonly peers: readonly (readonly [peer: OwnKey, wireGuard: StandIn])[] }[]
): RelayUnit => ({
  services: [relayPorts].flat().map((port, index) => ({
    name: index === 0 ? 'relay' : `relay-${index + 1}`,
    ways: [{ host: '127.0.0.1', port, isTls: false }],
  })),
  identities: identities.map(({ own, peers }) => ({
    publicKey: own.publicKey,
    privateKeyFile: own.file,
    peers: peers.map(([{ publicKey }, { port }]) => ({ publicKey, wireGuardPort: port })),
  })),
});
