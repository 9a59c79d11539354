import { execFileSync } from 'node:child_process';

import type { PeerSource } from '../pool.ts';
import { UdpProxy } from '../udp-proxy.ts';
import { keyOf } from './test-client.ts';
import { until } from './until.ts';
import { startStandIn } from './wireguard-stand-in.ts';

/**
 * For a network namespace of its own: nftables forbids the proxy's packets for a while, which its socket sees as EPERM,
 * as from a policy of eBPF. Prints what became of it as JSON.
 */
const nft = (rules: string): void => void execFileSync('nft', ['-f', '-'], { input: rules });

const wireGuard = await startStandIn();
let fromPeer = (_payload: Buffer): void => {};
const relays: PeerSource = {
  open: (_key, onPacket) => {
    fromPeer = onPacket;
    return { send: () => true, relay: 'r', tryAnother: () => {}, close: () => {} };
  },
};
const proxy = await UdpProxy.open({ relays, key: keyOf('peer'), wireGuardPort: wireGuard.port, rebindMs: 10 });
nft(`table inet t { chain c { type filter hook output priority 0; udp dport ${wireGuard.port} drop; }; }`);
await until('the socket is forbidden ten times', () => {
  fromPeer(Buffer.from('forbidden'));
  return proxy.tallies.rebinds >= 10;
});
const cameMeanwhile = wireGuard.got.length;
nft('delete table inet t');
await until('it comes through', () => {
  fromPeer(Buffer.from('allowed'));
  return wireGuard.got.some(({ payload }) => payload.toString() === 'allowed');
});
const ports = [...new Set(wireGuard.got.map(({ port }) => port))];
process.stdout.write(
  JSON.stringify({
    cameMeanwhile,
    isSamePort: ports.join() === String(proxy.port),
    errors: Object.keys(proxy.tallies.errors),
  }),
);
proxy.close();
wireGuard.close();
