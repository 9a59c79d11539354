import { createMetrics } from '@unbounded/telemetry';
import type { DeviceState } from '@unbounded/wireguard';
import { expect, test } from 'vitest';
import { watchSessions } from './wireguard-metrics.ts';

const NOW_MS = 1_000_000;

/** A device with a peer for each age of a handshake, milliseconds; undefined: none yet. */
const device = (...agesMs: readonly (number | undefined)[]): DeviceState => ({
  ...{ listenPort: 51_820, fwmark: 0 },
  peers: agesMs.map((age, index) => ({
    ...{ publicKey: `key ${index}`, allowedIps: [], persistentKeepaliveSeconds: 0, rxBytes: 0, txBytes: 0 },
    hasPresharedKey: false,
    ...(age !== undefined && { latestHandshakeMs: NOW_MS - age }),
  })),
});

const seriesOf = (text: string): string[] => text.split('\n').filter((line) => line.startsWith('unbounded_wireguard_'));

test('peers are counted by their latest handshake, and each interface has the age of its oldest', async () => {
  const metrics = createMetrics();
  let states = new Map([
    ['wg0', device(1000, 180_000, 180_001, undefined)],
    ['wg1', device(undefined)],
    ['wg2', device(-5000)],
  ]);
  const sessions = watchSessions(
    metrics,
    () => states,
    () => NOW_MS,
  );
  expect(seriesOf(await metrics.render())).toEqual([
    'unbounded_wireguard_peers{handshake="recent"} 3',
    'unbounded_wireguard_peers{handshake="old"} 1',
    'unbounded_wireguard_peers{handshake="never"} 2',
    'unbounded_wireguard_oldest_handshake_age_seconds{device="wg0"} 180.001',
    'unbounded_wireguard_oldest_handshake_age_seconds{device="wg2"} 0',
  ]);
  states = new Map([['wg0', device(2000)]]);
  expect(seriesOf(await metrics.render())).toEqual([
    'unbounded_wireguard_peers{handshake="recent"} 1',
    'unbounded_wireguard_peers{handshake="old"} 0',
    'unbounded_wireguard_peers{handshake="never"} 0',
    'unbounded_wireguard_oldest_handshake_age_seconds{device="wg0"} 2',
  ]);
  sessions[Symbol.dispose]();
  states = new Map();
  expect(seriesOf(await metrics.render())).toHaveLength(4);
});
