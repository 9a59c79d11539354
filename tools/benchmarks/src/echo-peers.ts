import { openSync } from 'node:fs';
import { join } from 'node:path';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import { gatewayAddress, NODE_ADDRESS } from './echo-network.ts';
import { type Probed, probeOf, type ProbingThread, startProbing } from './echo-thread.ts';

/** The process of the peers, apart from the one that is measured: a thread that probes for each. Ends when it is told to. */

interface PeersCall {
  readonly count: number;
  readonly netnsPath: string;
  readonly nodePublicKey: string;
  readonly folder: string;
}

const threads: ProbingThread[] = [];

process.once('message', async ({ count, netnsPath, nodePublicKey, folder }: PeersCall) => {
  const node: Probed = { node: 'node', publicKey: nodePublicKey, address: NODE_ADDRESS };
  const netnsFd = openSync(netnsPath, 'r');
  const peers: Probed[] = [];
  for (let index = 0; index < count; index++) {
    const [name, privateKey, address] = [`gateway-${index}`, generatePrivateKey(), gatewayAddress(index)];
    const thread = startProbing(privateKey, netnsFd, join(folder, name, 'health.json'));
    await thread.apply({ probes: [probeOf(node, address)], echoes: [] }); // one after the other: each takes a moment to load
    threads.push(thread);
    peers.push({ node: name, publicKey: publicKeyOf(privateKey), address });
  }
  process.once('message', async () => {
    await Promise.all(threads.map((thread) => thread.stop()));
    process.disconnect();
  });
  process.send!(peers);
});
