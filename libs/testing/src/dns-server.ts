import { createSocket } from 'node:dgram';
import { once } from 'node:events';

import { addressToBytes, parseAddress } from '@unbounded/ip';

/** A DNS server (RFC 1035) over UDP, for tests. */
export interface DnsServer {
  /** `ADDRESS:PORT` */
  readonly address: string;
  /** Addresses of a name, of both families; undefined: no such name. */
  set(name: string, addresses: readonly string[] | undefined): void;
  /** Every question is answered with SERVFAIL. */
  fail(isFailing: boolean): void;
  stop(): Promise<void>;
}

const HEADER_BYTES = 12;
const TYPES = { 4: 1, 6: 28 } as const;
const CODES = { ok: 0, serverFailure: 2, noSuchName: 3 } as const;

const readName = (message: Buffer): { name: string; end: number } => {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
};

/** One answer record: a pointer to the question's name, class IN, TTL 0. */
const record = (text: string): Buffer => {
  const address = parseAddress(text);
  const data = addressToBytes(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc000 + HEADER_BYTES, 0);
  head.writeUInt16BE(TYPES[address.family], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
};

/** What a name stands for; undefined: there is no such name. */
type Zone = (name: string) => readonly string[] | undefined;

const answerTo = (message: Buffer, zone: Zone, isFailing: boolean): Buffer => {
  const { name, end } = readName(message);
  const type = message.readUInt16BE(end);
  const known = zone(name);
  const addresses = (known ?? []).filter((text) => TYPES[parseAddress(text).family] === type);
  const code = isFailing ? CODES.serverFailure : known ? CODES.ok : CODES.noSuchName;
  const answers = isFailing ? [] : addresses.map(record);
  const head = Buffer.alloc(HEADER_BYTES);
  message.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8180 | code, 2); // a response, recursion desired and available
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answers.length, 6);
  return Buffer.concat([head, message.subarray(HEADER_BYTES, end + 4), ...answers]);
};

export interface DnsServerOptions {
  /** Where it listens: loopback, and a free port. */
  readonly host?: string;
  readonly port?: number;
  /** Asked for what has not been set. */
  readonly lookup?: Zone;
}

export const startDnsServer = async ({
  host = '127.0.0.1',
  port = 0,
  lookup = () => undefined,
}: DnsServerOptions = {}): Promise<DnsServer> => {
  const zone = new Map<string, readonly string[]>();
  const find: Zone = (name) => zone.get(name) ?? lookup(name);
  let isFailing = false;
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (message, from) => socket.send(answerTo(message, find, isFailing), from.port, from.address));
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${socket.address().port}`,
    set: (name, addresses) => void (addresses ? zone.set(name, addresses) : zone.delete(name)),
    fail: (failing) => void (isFailing = failing),
    stop: async () => {
      socket.close();
      await once(socket, 'close');
    },
  };
};
