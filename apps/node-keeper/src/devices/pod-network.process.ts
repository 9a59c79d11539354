import { text } from 'node:stream/consumers';
import { createRouteSocket } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { deviceUnit } from '@unbounded/keeper-protocol';
import { applyNetwork, removeNetwork } from './pod-network.apply.ts';

/**
 * In a pod's network namespace, with the right over its interfaces alone (pod-start network): sets up what the unit says that comes by
 * standard input, or with "remove" takes it away. Prints what it has come to as JSON; the reason of a failure goes to standard error.
 */

try {
  await using net = createRouteSocket();
  await using nft = createNftables();
  const kernel = { net, nft };
  if (process.argv[2] === 'remove') await removeNetwork(kernel);
  else console.log(JSON.stringify(await applyNetwork(kernel, deviceUnit.parse(await text(process.stdin)).network)));
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
