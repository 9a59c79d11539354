import type { ListedDevice, TailnetServer } from '@unbounded/tailnet';

import { createTailnetApi, type TailnetApi } from './api/tailnet-api.ts';
import type { Credentials } from './credentials.ts';
import type { RegistrarMetrics } from './registrar-metrics.ts';
import type { TailnetHealth } from './tailnet-health.ts';

/** How devices of a tailnet are made and removed. */
export type TailnetAccess =
  /** An OAuth client makes a key for each device, and removes devices. */
  | { readonly kind: 'api'; readonly api: TailnetApi }
  /** All devices log in by one key, and nobody removes them. */
  | { readonly kind: 'authKey'; authKey(signal: AbortSignal): Promise<string> };

export interface TailnetAccessOptions {
  readonly credentials: Credentials;
  readonly metrics: RegistrarMetrics;
  readonly health: TailnetHealth;
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * Those who need the list of all devices at the same time share one. It is asked for after they came: what was there by then is
 * in it.
 */
const sharedList = (api: TailnetApi): TailnetApi['devices'] => {
  let next: Promise<readonly ListedDevice[]> | undefined;
  let current: Promise<unknown> = Promise.resolve();
  return (signal) => {
    next ??= (async () => {
      await current.catch(() => undefined);
      const listing = api.devices(signal);
      [current, next] = [listing, undefined];
      return await listing;
    })();
    return next;
  };
};

const openApi = (url: string, secretName: string, { credentials, metrics, health, fetch }: TailnetAccessOptions) => {
  const api = createTailnetApi({
    url,
    client: (signal) => credentials.oauthClient(secretName, signal),
    ...(fetch ? { fetch } : {}),
    observe: (operation, outcome) => {
      metrics.called(operation, outcome);
      health.report(outcome.error);
    },
  });
  return { ...api, devices: sharedList(api) };
};

/** The access to a server stays the same while where it is does: its token is used again, and its wish to be left alone is heeded. */
export const createTailnetAccess = (options: TailnetAccessOptions): ((server: TailnetServer) => TailnetAccess) => {
  let known: { readonly of: string; readonly access: TailnetAccess } | undefined;
  const open = ({ apiURL, credentials: { oauthClientSecret, authKeySecret } }: TailnetServer): TailnetAccess => {
    if (oauthClientSecret !== undefined) return { kind: 'api', api: openApi(apiURL, oauthClientSecret, options) };
    return {
      kind: 'authKey',
      authKey: async (signal) => {
        try {
          const key = await options.credentials.authKey(authKeySecret ?? '', signal);
          options.health.report();
          return key;
        } catch (error) {
          options.health.report(error);
          throw error;
        }
      },
    };
  };
  return (server) => {
    const of = JSON.stringify(server);
    if (known?.of !== of) {
      options.health.reset();
      known = { of, access: open(server) };
    }
    return known.access;
  };
};
