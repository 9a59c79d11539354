import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';

/** What a device says on its socket, whichever program it is (tailscale.com, ipn/localapi). */

/** Of ipn.State. */
const RUNNING = 6;
/** Of a watcher (ipn.NotifyWatchOpt): the state as it is, before changes of it. */
const INITIAL_STATE = 2;
const RETRY_MS = 5;

const get = async (socketPath: string, path: string): Promise<IncomingMessage> => {
  const headers = { host: 'local-tailscaled.sock' };
  const asked = request({ socketPath, path: `/localapi/v0/${path}`, headers });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return response;
};

/** @returns whether it became Running before it went */
const watch = async (socketPath: string): Promise<boolean> => {
  const response = await get(socketPath, `watch-ipn-bus?mask=${INITIAL_STATE}`);
  try {
    for await (const line of createInterface(response))
      if (line !== '' && (JSON.parse(line) as { readonly State?: number }).State === RUNNING) return true;
    return false;
  } finally {
    response.destroy();
  }
};

/** Does not ask again and again: a device that answers has no time for its start. @throws Error after `withinMs` */
export const untilRunning = async (socketPath: string, withinMs: number): Promise<void> => {
  const deadline = performance.now() + withinMs;
  while (performance.now() < deadline) {
    const timer = delay(deadline - performance.now(), false, { ref: false });
    if (await Promise.race([watch(socketPath).catch(() => false), timer])) return;
    await delay(RETRY_MS);
  }
  throw new Error(`not within ${withinMs} ms: the device of ${socketPath} is Running`);
};

interface Status {
  readonly TailscaleIPs: readonly string[];
  readonly Peer?: Readonly<Record<string, { readonly HostName: string; readonly CurAddr: string }>>;
}

const statusOf = async (socketPath: string): Promise<Status> =>
  JSON.parse(await text(await get(socketPath, 'status'))) as Status;

export const addressesOf = async (socketPath: string): Promise<readonly string[]> =>
  (await statusOf(socketPath)).TailscaleIPs;

/** Whether packets to the peer go to an address of its own, and not to a relay. */
export const isDirect = async (socketPath: string, hostName: string): Promise<boolean> =>
  Object.values((await statusOf(socketPath)).Peer ?? {}).some(
    (peer) => peer.HostName === hostName && peer.CurAddr !== '',
  );
