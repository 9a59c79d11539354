import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { nodeCommand } from '@unbounded/config/node-command';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { planRelayWays, type RelayWays } from './relay-ways.plan.ts';

/** A node and the outside world, in which an address is the relay's, and another one that of a pod far away. */

const [RELAY, POD, PORT] = ['203.0.113.5', '203.0.113.9', 3478];
/** What kube-proxy has for a Service with an external IP, on every node. */
const TRANSLATES = `chain nat-output { type nat hook output priority -100
  ip daddr ${RELAY} tcp dport ${PORT} dnat to ${POD}
}`;
/** And with nftables on nodes that have no pod of it, where the policy is Local. */
const DROPS = `chain filter-output { type filter hook output priority 0
  ct state new ip daddr ${RELAY} tcp dport ${PORT} drop
}`;
/** Says to whoever connects at which address that was. */
const LISTENER = `require('node:net').createServer((socket) => socket.end(socket.localAddress.replace('::ffff:', '')))
  .listen(${PORT}, () => console.log('listening'))`;
const CLIENT = `require('node:net').connect(${PORT}, '${RELAY}').on('data', (data) => process.stdout.write(data)).setTimeout(Number(process.argv[1]), () => process.exit(1))`;
/** Nobody answers within this; who does answers long before the other. */
const [SILENT_MS, LATE_MS] = [3000, 60_000];

const inside = ({ path }: Netns, ...argv: string[]): string[] => [`--net=${path}`, ...argv];
const run = (netns: Netns, ...argv: string[]): string =>
  execFileSync('nsenter', inside(netns, ...argv), { encoding: 'utf8' });

let node: Netns;
let world: Netns;
let stop: () => void;
beforeEach(async () => {
  [node, world] = [createNetns(), createNetns()];
  run(node, 'ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', world.path);
  run(node, 'ip', 'addr', 'add', '203.0.113.1/24', 'dev', 'eth0');
  for (const address of [POD, RELAY]) run(world, 'ip', 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  for (const netns of [node, world]) for (const link of ['lo', 'eth0']) run(netns, 'ip', 'link', 'set', link, 'up');
  execFileSync('nsenter', inside(node, 'nft', '-f', '-'), {
    input: `table ip kube-proxy {
${TRANSLATES}
}`,
  });
  const listener = spawn('nsenter', inside(world, ...nodeCommand, '-e', LISTENER), {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  stop = () => listener.kill();
  await once(listener.stdout, 'data');
});
afterEach(() => {
  stop();
  for (const netns of [node, world]) netns.close();
});

const apply = async (ways: RelayWays['ways'], isKubeProxyNft = false): Promise<void> => {
  await using nft = createNftables({ netnsFd: node.fd });
  const table = { family: 'inet', name: 'unbounded', chains: planRelayWays({ ways, isKubeProxyNft }) } as const;
  await nft.replaceTable(table);
  expect(await nft.drift(table)).toBeUndefined();
};
const reached = (withinMs = LATE_MS): string => run(node, ...nodeCommand, '-e', CLIENT, String(withinMs));

test('a node’s connection to the relay goes where the address is, not where kube-proxy would lead it', async () => {
  await apply([]);
  expect(reached()).toBe(POD);
  await apply([{ host: RELAY, port: PORT, isTls: false }]);
  expect(reached()).toBe(RELAY);
  await apply([{ host: RELAY, port: PORT + 1, isTls: false }]);
  expect(reached()).toBe(POD);
});

test('also where kube-proxy would drop it, because no pod of the relay is on the node', async () => {
  execFileSync('nsenter', inside(node, 'nft', '-f', '-'), { input: `table ip kube-proxy {\n${DROPS}\n}` });
  await apply([{ host: RELAY, port: PORT, isTls: false }], true);
  expect(reached()).toBe(RELAY);
  await apply([{ host: RELAY, port: PORT, isTls: false }], false);
  expect(() => reached(SILENT_MS)).toThrow('Command failed');
});

test('at the node that has the address it is kube-proxy’s to lead on', async () => {
  run(world, 'ip', 'addr', 'del', `${RELAY}/24`, 'dev', 'eth0');
  run(node, 'ip', 'addr', 'add', `${RELAY}/32`, 'dev', 'lo');
  await apply([{ host: RELAY, port: PORT, isTls: false }]);
  expect(reached()).toBe(POD);
});
