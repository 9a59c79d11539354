import type { TailnetDevice } from '@unbounded/crds';
import { ignoreGone, isConflict } from '@unbounded/kube';
import { KEY_SECONDS, planRegistration, sealKey, SealedKeyError } from '@unbounded/tailnet';

import type { StatusWrite } from './device-status.ts';
import { DONE, nameOf, type RegistrationContext, type StepResult } from './registration-context.ts';
import type { TailnetAccess } from './tailnet-access.ts';

/** A key for the node of a record: for the pod that the API server says runs there, and readable by that node only. */

const LONGEST_DESCRIPTION = 50;
/** A node writes its own fields all the while. */
const MOST_ATTEMPTS = 5;

/** As the control server takes it. */
const descriptionOf = ({ metadata }: TailnetDevice): string =>
  `unbounded ${metadata.namespace} ${metadata.name}`.replaceAll(/[^A-Za-z0-9 -]+/g, '-').slice(0, LONGEST_DESCRIPTION);

/** Why the pod of a record gets no key, by the API server, not by a cache. */
const podObstacle = async (
  { metadata, spec }: TailnetDevice,
  { clients }: RegistrationContext,
  signal: AbortSignal,
): Promise<string | undefined> => {
  const place = { namespace: metadata.namespace ?? '', signal };
  const pod = await clients.pods.get(spec.pod, place).catch(ignoreGone);
  const name = `pod ${metadata.namespace}/${spec.pod}`;
  if (!pod) return `${name} is gone`;
  if (pod.metadata.uid !== spec.podUID) return `${name} is another one now`;
  if (pod.spec?.nodeName !== spec.node) return `${name} does not run on node ${spec.node}`;
  if (pod.metadata.deletionTimestamp !== undefined) return `${name} is being deleted`;
  return undefined;
};

interface MadeKey {
  /** Absent: it is the one key of all. */
  readonly id?: string;
  readonly key: string;
}

const makeKey = async (record: TailnetDevice, access: TailnetAccess, signal: AbortSignal): Promise<MadeKey> => {
  if (access.kind === 'authKey') return { key: await access.authKey(signal) };
  const { keyID } = record.status ?? {};
  if (keyID !== undefined) await access.api.deleteKey(keyID, signal);
  const wish = { tags: record.spec.tags, expirySeconds: KEY_SECONDS, description: descriptionOf(record) };
  return access.api.createKey(wish, signal);
};

/** The write that gives the key away. */
const givingOf = async (
  { spec, status }: TailnetDevice,
  { id, key }: MadeKey,
  publicKey: string,
  expiresAt: string,
): Promise<StatusWrite> => ({
  reason: 'KeyGiven',
  message: `node ${spec.node} has a key until ${expiresAt}`,
  fields: {
    ...{ sealedKey: { publicKey, sealed: await sealKey(key, publicKey, spec.podUID), expiresAt } },
    ...{ keyID: id ?? null, keysGiven: (status?.keysGiven ?? 0) + 1 },
  },
});

/** Writes the key into the record as it is now, as long as its node still asks for it. */
const give = async (
  record: TailnetDevice,
  made: MadeKey,
  publicKey: string,
  { context, signal }: { readonly context: RegistrationContext; readonly signal: AbortSignal },
): Promise<void> => {
  const expiresAt = new Date(context.now() + KEY_SECONDS * 1000).toISOString();
  const { name, namespace, uid } = record.metadata;
  for (let current = record, attempt = 1; ; attempt++) {
    try {
      await context.status.write(current, await givingOf(current, made, publicKey, expiresAt), signal);
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_ATTEMPTS) throw error;
      current = await context.clients.devices.get(name, { namespace, signal });
      const { steps } = planRegistration(current, context.now());
      const isAsked = steps.some((step) => step.kind === 'giveKey' && step.publicKey === publicKey);
      if (current.metadata.uid !== uid || !isAsked) throw error;
    }
  }
};

/** Whether it is one: a key that could not be sealed would be made in vain, again and again. */
const isPublicKey = (publicKey: string, podUID: string): Promise<boolean> =>
  sealKey('', publicKey, podUID).then(
    () => true,
    (error: unknown) => {
      if (error instanceof SealedKeyError) return false;
      throw error;
    },
  );

/** @throws TailnetApiError, CredentialsMissingError, TailnetDoubtedError, ApiError (isConflict) */
export const giveKey = async (
  record: TailnetDevice,
  publicKey: string,
  context: RegistrationContext,
  signal: AbortSignal,
): Promise<StepResult> => {
  const { status, keys, metrics, logger, accessTo } = context;
  const refuse = async (reason: 'PodNotThere' | 'KeyRequestRefused', message: string): Promise<StepResult> => {
    await status.write(record, { reason, message }, signal);
    return DONE; // the next change of pod or request asks again
  };
  const obstacle = await podObstacle(record, context, signal);
  if (obstacle !== undefined) return refuse('PodNotThere', `${obstacle}: its node gets no key`);
  if (!(await isPublicKey(publicKey, record.spec.podUID)))
    return refuse('KeyRequestRefused', `status.keyRequest.publicKey ${publicKey} is no X25519 public key`);
  const access = accessTo(record);
  const uid = record.metadata.uid ?? '';
  const waitMs = keys.take(uid);
  if (waitMs > 0) return { kind: 'again', afterMs: waitMs };
  const made = await makeKey(record, access, signal).catch((error: unknown) => {
    keys.giveBack(uid); // failures have pauses of their own
    throw error;
  });
  try {
    await give(record, made, publicKey, { context, signal });
  } catch (error) {
    // Nobody has it. Where that fails as well it expires by itself.
    if (access.kind === 'api' && made.id !== undefined)
      await access.api.deleteKey(made.id, signal).catch((cause: unknown) => {
        logger.warn(
          { device: nameOf(record), reason: (cause as Error).message },
          'a key that nobody got was not deleted',
        );
      });
    throw error;
  }
  metrics.keyGiven();
  logger.info({ device: nameOf(record), node: record.spec.node, key: made.id }, 'key given');
  return DONE;
};
