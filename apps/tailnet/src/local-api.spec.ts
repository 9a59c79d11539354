import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { createLocalApi, type LocalApi, LocalApiError } from './local-api.ts';

/** The process itself is asked in `tools/test matrix tailnet`; here are answers that it should not give. */

let folder: string;
let server: Server;
let api: LocalApi;
let asked: string[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'local-api-'));
  asked = [];
  server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push(`${request.method} ${request.url} ${body}`.trim());
      answer(request, response);
    });
  });
  const socket = join(folder, 'tailscaled.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  api = createLocalApi(socket);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true });
});

const says = (value: unknown) => (_: IncomingMessage, response: ServerResponse) => response.end(JSON.stringify(value));

test('a device says what it is, and how its peers are reached', async () => {
  answer = says({
    ...{ BackendState: 'Running', TailscaleIPs: ['100.64.0.1'], Self: { ID: 'n1', DNSName: 'a.example.ts.net.' } },
    Peer: {
      a: { Active: true, CurAddr: '192.0.2.1:1', Relay: 'fra' },
      b: { Active: true, CurAddr: '', Relay: 'fra' },
      c: { Active: false, CurAddr: '192.0.2.1:2' },
    },
  });
  expect(await api.status({ withPaths: true })).toEqual({
    ...{ state: 'Running', addresses: ['100.64.0.1'], id: 'n1', dnsName: 'a.example.ts.net', health: [] },
    paths: ['direct', 'DERP fra'],
  });
  expect(asked).toEqual(['GET /localapi/v0/status?peers=true']);
});

test('a device that was never logged in has no name and no address', async () => {
  answer = says({ BackendState: 'NeedsLogin', TailscaleIPs: null, Self: { ID: '', DNSName: '' }, Health: null });
  expect(await api.status()).toEqual({ state: 'NeedsLogin', addresses: [], health: [] });
});

test.each<[what: string, answer: (request: IncomingMessage, response: ServerResponse) => void, why: string]>([
  ['no JSON', (_, response) => response.end('<html>'), 'is no JSON'],
  ['another state', says({ BackendState: 'Flying' }), 'BackendState'],
  ['no list of addresses', says({ BackendState: 'Running', TailscaleIPs: '100.64.0.1' }), 'TailscaleIPs'],
  ['an error', (_, response) => response.writeHead(500).end('secret'), 'status 500'],
  ['half of an answer', (request) => request.socket.destroy(), 'LocalAPI status'],
  ['9 MiB', (_, response) => response.end(Buffer.alloc(9 << 20, 'a')), 'more than'],
])('an answer of %s is an error that says so, and not what was sent', async (_, given, why) => {
  answer = given;
  const failed = api.status();
  await expect(failed).rejects.toThrow(LocalApiError);
  await expect(failed).rejects.toThrow(why);
  await expect(failed).rejects.not.toThrow('secret');
});

test('an answer that comes byte by byte ends when its time is over', async () => {
  answer = (_, response) => {
    const drops = setInterval(() => response.write(' '), 100);
    onTestFinished(() => clearInterval(drops));
  };
  await expect(Promise.race([api.status(), delay(6000)])).rejects.toThrow('no answer within 3000 ms');
});

test('a socket that nobody listens on is an error', async () => {
  await expect(createLocalApi(join(folder, 'none.sock')).status()).rejects.toThrow(LocalApiError);
});

test.each([
  ['needs to', 'NeedsLogin', ['POST /localapi/v0/login-interactive']],
  ['has used it', 'Starting', []],
  ['is logged in', 'Running', []],
])('a key is given once, and a login follows only where the device %s', async (_, state, more) => {
  answer = (request, response) => says(request.method === 'GET' ? { BackendState: state } : {})(request, response);
  await api.logIn('tskey-1', { hostName: 'web', controlURL: 'https://control.example.com' });
  const prefs = {
    ...{ ControlURL: 'https://control.example.com', Hostname: 'web', WantRunning: true },
    ...{ CorpDNS: false, RouteAll: false },
  };
  expect(asked).toEqual([
    `POST /localapi/v0/start ${JSON.stringify({ AuthKey: 'tskey-1', UpdatePrefs: prefs })}`,
    'GET /localapi/v0/status?peers=false',
    ...more,
  ]);
});
