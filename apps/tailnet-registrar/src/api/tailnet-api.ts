import type { ListedDevice } from '@unbounded/tailnet';
import { z } from 'zod';

import { createAccessToken, type OAuthClient } from './access-token.ts';
import { TailnetApiError } from './api-error.ts';
import { type ApiRequest, createRequests, type RequestsOptions } from './requests.ts';

/** The part of Tailscale's REST API that we use; other control servers speak it, too. */

interface KeyWish {
  readonly tags: readonly string[];
  readonly expirySeconds: number;
  /** At most 50 letters, digits, dashes and spaces. */
  readonly description: string;
}

export interface TailnetApi {
  /** For one device, which needs no approval and stays until it is removed. */
  createKey(wish: KeyWish, signal: AbortSignal): Promise<{ readonly id: string; readonly key: string }>;
  /** One that is gone already is no error, as with devices. */
  deleteKey(id: string, signal: AbortSignal): Promise<void>;
  device(id: string, signal: AbortSignal): Promise<ListedDevice | undefined>;
  /** All of the tailnet. */
  devices(signal: AbortSignal): Promise<readonly ListedDevice[]>;
  deleteDevice(id: string, signal: AbortSignal): Promise<void>;
}

export type ApiOperation = keyof TailnetApi;

export interface ApiOutcome {
  /** Absent: it went well. */
  readonly error?: Error;
  readonly ms: number;
}

export interface TailnetApiOptions extends RequestsOptions {
  readonly client: (signal: AbortSignal) => Promise<OAuthClient>;
  readonly observe?: (operation: ApiOperation, outcome: ApiOutcome) => void;
}

/** A hundred thousand devices; a list that is cut off is no JSON. */
const LONGEST_LIST = 128 * 1024 * 1024;
const TAILNET = '/api/v2/tailnet/-';

const createdKey = z.object({ id: z.string().min(1).max(128), key: z.string().min(1).max(512) });
const listedDevice = z.object({
  nodeId: z.string().min(1).max(128),
  hostname: z.string().default(''),
  tags: z
    .array(z.string())
    .nullish()
    .transform((tags) => tags ?? []),
  created: z.string().default(''),
  expires: z.string().optional(),
  keyExpiryDisabled: z.boolean().default(false),
});
const deviceList = z.object({ devices: z.array(listedDevice) });

const deviceOf = (listed: z.infer<typeof listedDevice>): ListedDevice => {
  const { nodeId, hostname, tags, created, expires, keyExpiryDisabled } = listed;
  const expiry = keyExpiryDisabled || expires === undefined || expires === '' ? {} : { expires };
  return { id: nodeId, hostName: hostname, tags, created, ...expiry };
};

/** Without the text: it may hold a key. */
const parse = <T>(schema: z.ZodType<T>, text: string, what: string): T => {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    throw new TailnetApiError(`${what}: the answer is not as the API has it`, { failure: 'ControlServerUnreachable' });
  }
};

/** With a token; one that is refused is replaced, once. */
const createAuthorizedSend = ({ client, ...options }: TailnetApiOptions) => {
  const { elapsed = () => performance.now() } = options;
  const send = createRequests(options);
  const accessToken = createAccessToken(send, client, elapsed);
  const attempt = async (request: ApiRequest, token: string) =>
    send({
      ...request,
      headers: { ...request.headers, authorization: `Bearer ${token}` },
      secrets: [token],
    });
  return async (request: ApiRequest) => {
    const token = await accessToken.get(request.signal);
    try {
      return await attempt(request, token);
    } catch (error) {
      if (!(error instanceof TailnetApiError) || error.status !== 401) throw error;
      accessToken.drop(token);
      return attempt(request, await accessToken.get(request.signal));
    }
  };
};

const observed = (api: TailnetApi, { observe, elapsed = () => performance.now() }: TailnetApiOptions): TailnetApi => {
  const around = async <T>(operation: ApiOperation, call: () => Promise<T>): Promise<T> => {
    const startedMs = elapsed();
    const observed = (rest: { error?: Error } = {}) => observe?.(operation, { ...rest, ms: elapsed() - startedMs });
    try {
      const answer = await call();
      observed();
      return answer;
    } catch (error) {
      observed({ error: error as Error });
      throw error;
    }
  };
  return {
    createKey: (wish, signal) => around('createKey', () => api.createKey(wish, signal)),
    deleteKey: (id, signal) => around('deleteKey', () => api.deleteKey(id, signal)),
    device: (id, signal) => around('device', () => api.device(id, signal)),
    devices: (signal) => around('devices', () => api.devices(signal)),
    deleteDevice: (id, signal) => around('deleteDevice', () => api.deleteDevice(id, signal)),
  };
};

/** @throws TailnetApiError by all of its functions, and what `client` throws */
export const createTailnetApi = (options: TailnetApiOptions): TailnetApi => {
  const send = createAuthorizedSend(options);
  const devicePath = (id: string): string => `/api/v2/device/${encodeURIComponent(id)}`;
  const there = async (request: ApiRequest): Promise<string> => {
    const { isThere, text } = await send(request);
    if (isThere) return text;
    const message = `${request.method} ${request.path}: 404: apiURL must be the API of a control server`;
    throw new TailnetApiError(message, { failure: 'RequestRefused', status: 404 });
  };
  const remove = async (path: string, signal: AbortSignal): Promise<void> => {
    await send({ method: 'DELETE', path, signal });
  };
  const api: TailnetApi = {
    createKey: async ({ tags, expirySeconds, description }, signal) => {
      const create = { reusable: false, ephemeral: false, preauthorized: true, tags };
      const body = JSON.stringify({ capabilities: { devices: { create } }, expirySeconds, description });
      const headers = { 'content-type': 'application/json' };
      const text = await there({ method: 'POST', path: `${TAILNET}/keys`, headers, body, signal });
      return parse(createdKey, text, 'createKey');
    },
    deleteKey: (id, signal) => remove(`${TAILNET}/keys/${encodeURIComponent(id)}`, signal),
    device: async (id, signal) => {
      const { isThere, text } = await send({ method: 'GET', path: devicePath(id), signal });
      return isThere ? deviceOf(parse(listedDevice, text, 'device')) : undefined;
    },
    devices: async (signal) => {
      const text = await there({ method: 'GET', path: `${TAILNET}/devices`, longestAnswer: LONGEST_LIST, signal });
      return parse(deviceList, text, 'devices').devices.map(deviceOf);
    },
    deleteDevice: (id, signal) => remove(devicePath(id), signal),
  };
  return observed(api, options);
};
