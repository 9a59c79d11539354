import { isForbidden, isNotFound, type ResourceClient, type Secret } from '@unbounded/kube';

import type { OAuthClient } from './api/access-token.ts';

/** Credentials of the tailnet, from Secrets of the program's own namespace. They are in memory as long as they are used, and nowhere else. */

export class CredentialsMissingError extends Error {
  override readonly name = 'CredentialsMissingError';
}

export interface Credentials {
  /** @throws CredentialsMissingError */
  oauthClient(secretName: string, signal: AbortSignal): Promise<OAuthClient>;
  /** @throws CredentialsMissingError */
  authKey(secretName: string, signal: AbortSignal): Promise<string>;
}

export interface CredentialsOptions {
  readonly secrets: Pick<ResourceClient<Secret>, 'get'>;
  readonly namespace: string;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

/** A Secret that was changed is used within this time, without a watch on Secrets. */
const FRESH_MS = 20_000;

const textIn = ({ data }: Secret, key: string): string =>
  Buffer.from(data?.[key] ?? '', 'base64')
    .toString('utf8')
    .trim();

export const createCredentials = ({
  secrets,
  namespace,
  now = () => performance.now(),
}: CredentialsOptions): Credentials => {
  const read = new Map<string, { readonly secret: Promise<Secret>; readonly untilMs: number }>();

  const get = async (name: string): Promise<Secret> => {
    const where = `Secret ${namespace}/${name}`;
    try {
      return await secrets.get(name, { namespace });
    } catch (error) {
      if (isNotFound(error)) throw new CredentialsMissingError(`there is no ${where}: make it`);
      if (isForbidden(error))
        throw new CredentialsMissingError(`${where} may not be read: name it in tailnet-registrar.secretNames (chart)`);
      throw error;
    }
  };

  const secretOf = async (name: string, signal: AbortSignal): Promise<Secret> => {
    let known = read.get(name);
    if (!known || known.untilMs <= now()) {
      known = { secret: get(name), untilMs: now() + FRESH_MS };
      read.clear(); // there is one at a time
      read.set(name, known);
      known.secret.catch(() => read.delete(name)); // asked for again at once
    }
    const secret = await known.secret;
    signal.throwIfAborted();
    return secret;
  };

  /** What is incomplete is read again at once: somebody may be writing it. */
  const textsOf = async (name: string, keys: readonly string[], signal: AbortSignal): Promise<readonly string[]> => {
    const secret = await secretOf(name, signal);
    const texts = keys.map((key) => textIn(secret, key));
    const missing = keys[texts.indexOf('')];
    if (missing === undefined) return texts;
    read.delete(name);
    throw new CredentialsMissingError(`Secret ${namespace}/${name} has no ${missing}: write it into data.${missing}`);
  };

  return {
    async oauthClient(name, signal) {
      const [clientID, clientSecret] = await textsOf(name, ['client-id', 'client-secret'], signal);
      return { clientID: clientID!, clientSecret: clientSecret! };
    },
    authKey: async (name, signal) => (await textsOf(name, ['auth-key'], signal))[0]!,
  };
};
