import { randomBytes } from 'node:crypto';

import { privateKeyObject, publicKeyBytes } from '@unbounded/wireguard/x25519';

import { type ClientOptions, RelayClient } from '../client.ts';
import { type Exchange, exchangeWith } from '../platform-crypto.ts';

export interface Keys {
  readonly privateKey: Buffer;
  readonly publicKey: Buffer;
  readonly exchange: Exchange;
}

export const newKeys = (privateKey = randomBytes(32)): Keys => {
  const publicKey = publicKeyBytes(privateKeyObject(privateKey));
  return { privateKey, publicKey, exchange: exchangeWith(privateKey) };
};

/** Keys from names, so that tests say who is who; nobody can prove them. */
export const keyOf = (name: string): Buffer => Buffer.alloc(32, `${name}.key.`);

export interface TestClient extends Disposable {
  readonly client: RelayClient;
  readonly got: { readonly key: Buffer; readonly payload: Buffer }[];
  readonly gone: { readonly key: Uint8Array; readonly reason: number }[];
  /** What `state` said, each time that it changed; repetitions of the phase left out. */
  readonly phases: string[];
}

export const local = (port: number) => ({ host: '127.0.0.1', port, isTls: false });

/** A client that has been started, and what it tells. */
export const startClient = (
  ports: number | readonly number[],
  options: Partial<ClientOptions> & Pick<ClientOptions, 'identity'>,
): TestClient => {
  const got: TestClient['got'] = [];
  const gone: TestClient['gone'] = [];
  const phases: string[] = [];
  const client = new RelayClient({
    ways: [ports].flat().map(local),
    events: {
      onState: ({ state }) => {
        if (phases.at(-1) !== state.phase) phases.push(state.phase);
      },
      onData: (_client, key, payload) => got.push({ key, payload }),
      onPeerGone: (_client, key, reason) => gone.push({ key, reason }),
    },
    ...options,
  });
  client.start();
  return { client, got, gone, phases, [Symbol.dispose]: () => client.close() };
};
