import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../machine/command.ts';
import { binary } from '../../machine/paths.ts';

/** The control server of a tailnet for tests (tools/assets/tailnet-control), in the network namespace of the process. */

const [HOST, PORT] = ['10.77.0.1', 8080];
export const CONTROL_URL = `http://${HOST}:${PORT}`;
const CLIENT_ID = 'lab-id';
const CLIENT_SECRET = 'planted-client-secret';

/** What clients are told beside the devices. */
interface HostileMap {
  readonly routes?: readonly string[];
  readonly oneCgnat?: boolean;
  readonly peerAddress?: string;
  readonly cacheNetworkMaps?: boolean;
}

export interface ControlServer {
  /** A key for one device. */
  createKey(tags: readonly string[]): Promise<string>;
  tell(map: HostileMap): Promise<void>;
  deleteDevice(hostName: string): Promise<void>;
  deviceNames(): Promise<string[]>;
  /** Nobody reaches it; its DERP relay goes on, as it is another server elsewhere. */
  cutOff(isCutOff: boolean): void;
  end(): void;
}

const listening = async (child: ChildProcess): Promise<void> => {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`tailnet-control ended with ${code}`);
  });
  await Promise.race([once(child.stdout!, 'data'), ended]);
};

const ask = async (path: string, init: RequestInit = {}): Promise<Response> => {
  const response = await fetch(`${CONTROL_URL}${path}`, init);
  if (!response.ok)
    throw new Error(`${init.method ?? 'GET'} ${path}: ${response.status} ${(await response.text()).slice(0, 300)}`);
  return response;
};
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  ask(path, { method: 'POST', body: JSON.stringify(body), headers });

interface ListedDevice {
  readonly nodeId: string;
  readonly hostname: string;
}

export const startControlServer = async (folder: string): Promise<ControlServer> => {
  const secretFile = join(folder, 'client-secret');
  writeFileSync(secretFile, CLIENT_SECRET, { mode: 0o600 });
  const child = spawn(
    binary('tailnet-control'),
    [
      '-listen',
      `${HOST}:${PORT}`,
      '-derp',
      `${HOST}:3443`,
      '-stun',
      `${HOST}:3478`,
      '-client-id',
      CLIENT_ID,
      '-client-secret-file',
      secretFile,
    ],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  );
  await listening(child);
  const form = new URLSearchParams({ client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
  const { access_token: token } = (await (await ask('/api/v2/oauth/token', { method: 'POST', body: form })).json()) as {
    access_token: string;
  };
  const authorization = { authorization: `Bearer ${token}` };
  const devices = async (): Promise<readonly ListedDevice[]> => {
    const listed = await ask('/api/v2/tailnet/-/devices', { headers: authorization });
    return ((await listed.json()) as { devices: readonly ListedDevice[] }).devices;
  };
  return {
    async createKey(tags) {
      const create = { reusable: false, ephemeral: false, preauthorized: true, tags };
      const body = { capabilities: { devices: { create } }, expirySeconds: 300 };
      const made = await post('/api/v2/tailnet/-/keys', body, authorization);
      return ((await made.json()) as { key: string }).key;
    },
    tell: async (map) => void (await post('/debug/map', map)),
    deviceNames: async () => (await devices()).map(({ hostname }) => hostname).sort(),
    async deleteDevice(hostName) {
      const found = (await devices()).find(({ hostname }) => hostname === hostName);
      if (!found) throw new Error(`no device ${hostName}`);
      await ask(`/api/v2/device/${found.nodeId}`, { method: 'DELETE', headers: authorization });
    },
    cutOff(isCutOff) {
      if (isCutOff)
        run(['nft', `table ip away { chain out { type filter hook output priority 0; tcp dport ${PORT} drop; }; }`]);
      else run(['nft', 'delete', 'table', 'ip', 'away']);
    },
    end: () => void child.kill('SIGKILL'),
  };
};
