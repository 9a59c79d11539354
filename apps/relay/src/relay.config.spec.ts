import { ConfigError, readConfig } from '@unbounded/config';
import { expect, test } from 'vitest';

import { relayOptions } from './relay.config.ts';

const read = (...argv: string[]) => readConfig(relayOptions, { argv, env: {} });

test('"relay --addr :3478" is all it takes', () => {
  expect(read('--addr', ':3478')).toMatchObject({ addr: { host: '', port: 3478 }, auth: 'prefer', linkPeers: [] });
  expect(read()).toMatchObject({
    addr: { port: 3478 },
    peerQueue: 524_288,
    queueMemory: 268_435_456,
    idleTimeout: 90_000,
  });
});

test('addresses, lists and sizes', () => {
  const config = read(
    ...['--addr', '[2001:db8::1]:443', '--link-addr', ':3479', '--link-peers', 'relay.ns.svc:3479,192.0.2.1:9'],
    ...['--proxy-protocol', '192.0.2.0/24,2001:db8::7', '--peer-queue', '1MiB'],
  );
  expect(config).toMatchObject({
    addr: { host: '2001:db8::1', port: 443 },
    linkAddr: { host: '', port: 3479 },
    linkPeers: [
      { host: 'relay.ns.svc', port: 3479 },
      { host: '192.0.2.1', port: 9 },
    ],
    proxyProtocol: ['192.0.2.0/24', '2001:db8::7'],
    peerQueue: 1_048_576,
  });
});

test.each([
  ['--addr', '3478', 'must be like :3478'],
  ['--addr', ':70000', 'must be like :3478'],
  ['--addr', '[relay]:1', 'must be like :3478'],
  ['--link-peers', ':3479', 'must be HOST:PORT'],
  ['--proxy-protocol', 'balancer', 'must be addresses or prefixes'],
  ['--peer-queue', '1KiB', 'at least 65536 bytes'],
  ['--peer-queue', '1MB', 'must be a size'],
  ['--auth', 'never', 'off, prefer, require'],
])('%s %s is refused: %s', (flag, value, message) => {
  expect(() => read(flag, value)).toThrow(ConfigError);
  expect(() => read(flag, value)).toThrow(message);
});
