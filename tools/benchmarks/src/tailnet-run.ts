import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { makeNode, PLACE } from '@unbounded/rig/tailnet-bridge-node';
import { startControlServer } from '@unbounded/rig/tailnet-control-server';
import { benchMany } from './tailnet-many.ts';
import { benchPairs } from './tailnet-pair.ts';

/** What tailnet.ts runs, in namespaces of its own: the node, a control server, and the measurements. */

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: process.env['ROUNDS'] ?? '5' },
    devices: { type: 'string', default: '30' },
    only: { type: 'string', default: 'pairs,many' },
  },
});

const sayLoad = (when: string): void => console.log(`load average ${when}: ${loadavg()[0]!.toFixed(1)}`);

sayLoad('before');
makeNode();
const control = await startControlServer(PLACE);
await control.tell({ cacheNetworkMaps: true });
if (values.only.includes('pairs')) await benchPairs(control, Number(values.rounds));
if (values.only.includes('many')) await benchMany(control, Number(values.devices));
control.end();
sayLoad('after');
process.exit();
