/** All that an etcd stores, kept and restored through its JSON gateway (https://etcd.io/docs/latest/dev-guide/api_grpc_gateway). */

export interface EtcdState {
  /**
   * Makes etcd store what it did when this was read, but for what the API server keeps of itself there.
   * @returns keys that others had changed, added or removed
   */
  restore(): Promise<string[]>;
}

interface KeyValue {
  /** Base64, as the value. */
  readonly key: string;
  readonly value?: string;
  /** The revision of the last change: as text, it has 64 bits. */
  readonly mod_revision: string;
}

/** Where a process of the API server says that it lives, and up to where it has compacted. */
const OF_THE_SERVER = /^\/registry\/(?:leases\/kube-system\/apiserver-|masterleases\/)|^compact_rev_key$/;

/** All keys, whatever they are: from the smallest one on, without an end. */
const EVERY_KEY = { key: Buffer.of(0).toString('base64'), range_end: Buffer.of(0).toString('base64') };
/** Below the 128 that etcd takes in a transaction (`--max-txn-ops`). */
const CHANGES_AT_ONCE = 100;

const textOf = (base64: string): string => Buffer.from(base64, 'base64').toString();

type Send = (path: string, body: object) => Promise<{ readonly kvs?: readonly KeyValue[] }>;

/** @throws Error with what etcd answers */
const senderTo =
  (url: string): Send =>
  async (path, body) => {
    const answer = await fetch(`${url}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`etcd: ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { kvs?: KeyValue[] };
  };

const readAll = async (send: Send, options: object = {}): Promise<Map<string, KeyValue>> => {
  const { kvs = [] } = await send('range', { ...EVERY_KEY, ...options });
  return new Map(kvs.filter(({ key }) => !OF_THE_SERVER.test(textOf(key))).map((one) => [one.key, one]));
};

type Change = { readonly requestPut: object } | { readonly requestDeleteRange: object };

const write = async (send: Send, changes: readonly Change[]): Promise<void> => {
  for (let at = 0; at < changes.length; at += CHANGES_AT_ONCE)
    await send('txn', { success: changes.slice(at, at + CHANGES_AT_ONCE) });
};

/** Reads all now. @param url of etcd's clients */
export const readEtcdState = async (url: string): Promise<EtcdState> => {
  const send = senderTo(url);
  const values = await readAll(send);
  const revisions = new Map([...values].map(([key, one]) => [key, one.mod_revision]));
  const restoreOnce = async (): Promise<string[]> => {
    const present = await readAll(send, { keys_only: true });
    const added = [...present.keys()].filter((key) => !values.has(key));
    const changed = [...values.keys()].filter((key) => present.get(key)?.mod_revision !== revisions.get(key));
    await write(send, [
      ...added.map((key) => ({ requestDeleteRange: { key } })),
      ...changed.map((key) => ({ requestPut: { key, value: values.get(key)!.value } })),
    ]);
    if (changed.length > 0)
      for (const [key, { mod_revision }] of await readAll(send, { keys_only: true }))
        if (changed.includes(key)) revisions.set(key, mod_revision);
    return [...added, ...changed].map(textOf);
  };
  return { restore: restoreOnce };
};
