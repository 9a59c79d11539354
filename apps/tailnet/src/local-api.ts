import { request } from 'node:http';
import { z } from 'zod';

/** What a device says of itself, and how it is told to log in: the LocalAPI of tailscaled, on the device's own socket. */

/** As the packages of tailscale.com number them (ipn.State), by their names. */
type BackendState =
  | 'NoState'
  | 'InUseOtherUser'
  | 'NeedsLogin'
  | 'NeedsMachineAuth'
  | 'Stopped'
  | 'Starting'
  | 'Running';

export interface LocalStatus {
  readonly state: BackendState;
  readonly addresses: readonly string[];
  /** At the control server; absent: it has never been there. */
  readonly id?: string;
  /** In the tailnet, without a dot at its end. */
  readonly dnsName?: string;
  /** What is wrong, in words. */
  readonly health: readonly string[];
  /** Of each peer that it talks with: `direct`, or the relay; absent: it was not asked for. */
  readonly paths?: readonly string[];
}

export interface DeviceName {
  readonly hostName: string;
  readonly controlURL: string;
}

export class LocalApiError extends Error {
  override readonly name = 'LocalApiError';
}

export interface LocalApi {
  /** @throws LocalApiError: its process does not answer */
  status(options?: { readonly withPaths?: boolean }): Promise<LocalStatus>;
  /** Logs in by the key, at this control server and under this name, whatever it had before. @throws LocalApiError */
  logIn(key: string, device: DeviceName): Promise<void>;
}

const [TIMEOUT_MS, MOST_BYTES] = [3000, 8 << 20];

const peer = z.object({ CurAddr: z.string().optional(), Relay: z.string().optional(), Active: z.boolean().optional() });
const answer = z.object({
  BackendState: z.enum([
    ...(['NoState', 'InUseOtherUser', 'NeedsLogin', 'NeedsMachineAuth', 'Stopped', 'Starting', 'Running'] as const),
  ]),
  TailscaleIPs: z.array(z.string()).nullish(),
  Self: z.object({ ID: z.string().optional(), DNSName: z.string().optional() }).nullish(),
  Health: z.array(z.string()).nullish(),
  Peer: z.record(z.string(), peer).nullish(),
});

const ask = (socketPath: string, method: 'GET' | 'POST', path: string, body?: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new LocalApiError(`LocalAPI ${path}: ${why}`));
    const headers = { host: 'local-tailscaled.sock' };
    // Of the whole answer: a process that is no longer its own could send a byte now and then.
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const why = (error: Error): string => (signal.aborted ? `no answer within ${TIMEOUT_MS} ms` : error.message);
    const asked = request({ socketPath, path: `/localapi/v0/${path}`, method, headers, signal });
    asked.on('error', (error) => fail(why(error)));
    asked.on('response', (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MOST_BYTES) asked.destroy(new Error(`more than ${MOST_BYTES} bytes`));
        else chunks.push(chunk);
      });
      response.on('error', (error) => fail(why(error)));
      response.on('end', () => {
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) resolve(Buffer.concat(chunks).toString());
        else fail(`status ${statusCode}`); // the body may repeat what was sent
      });
    });
    asked.end(body);
  });

/**
 * As the process itself begins with (tools/assets/tailnet-device). One that was logged out has none of it any more, and would show the key to
 * the packages' own control server.
 */
const prefsOf = ({ hostName, controlURL }: DeviceName): object => ({
  ...{ ControlURL: controlURL, Hostname: hostName, WantRunning: true },
  ...{ CorpDNS: false, RouteAll: false },
});

const ofPeers = (peers: z.output<typeof answer>['Peer']): string[] =>
  Object.values(peers ?? {})
    .filter(({ Active }) => Active)
    .map(({ CurAddr, Relay }) => (CurAddr ? 'direct' : `DERP ${Relay ?? ''}`.trim()));

const parse = (text: string): LocalStatus => {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new LocalApiError('LocalAPI status: is no JSON');
  }
  const { success, data, error } = answer.safeParse(json);
  if (!success) throw new LocalApiError(`LocalAPI status: ${z.prettifyError(error)}`);
  const { BackendState: state, TailscaleIPs, Self, Health, Peer } = data;
  return {
    ...{ state, addresses: TailscaleIPs ?? [], health: Health ?? [] },
    ...(Self?.ID ? { id: Self.ID } : {}),
    ...(Self?.DNSName ? { dnsName: Self.DNSName.replace(/\.$/, '') } : {}),
    ...(Peer ? { paths: ofPeers(Peer) } : {}),
  };
};

export const createLocalApi = (socketPath: string): LocalApi => {
  const status: LocalApi['status'] = async ({ withPaths = false } = {}) =>
    parse(await ask(socketPath, 'GET', `status?peers=${withPaths}`));
  return {
    status,
    async logIn(key, device) {
      await ask(socketPath, 'POST', 'start', JSON.stringify({ AuthKey: key, UpdatePrefs: prefsOf(device) }));
      // Where "start" has used the key already, another login would ask for new ones for ever.
      if ((await status()).state === 'NeedsLogin') await ask(socketPath, 'POST', 'login-interactive', '');
    },
  };
};
