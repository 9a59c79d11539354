import { setTimeout as sleep } from 'node:timers/promises';

import { backoffDelay } from '@unbounded/controller-runtime';
import type { HostPart } from '@unbounded/host';
import { type ConfigMap, ignoreGone, isConflict, type ResourceClient, type Secret } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { publishBundle } from './ca-bundle.ts';
import { createMaterial, renewed } from './renewal.ts';
import { ForeignObjectError, materialOf, secretOf, type TlsMaterial } from './tls-secret.ts';

const CHECK_MS = 3_600_000;
const RETRY = { baseMs: 200, maxMs: 5000 };
/** Each conflict means that another replica has written. */
const MOST_ATTEMPTS = 10;

export interface ServingCertificateOptions {
  readonly secrets: ResourceClient<Secret>;
  readonly configMaps: ResourceClient<ConfigMap>;
  readonly namespace: string;
  /** The Service that clients name. */
  readonly service: string;
  readonly secretName: string;
  /** Where clients find the CA, as `ca.crt`. */
  readonly configMapName: string;
  readonly now: () => Date;
  readonly logger: Logger;
  readonly checkMs?: number;
}

export interface ServingCertificatePart extends HostPart {
  /** Another object after each renewal. @throws Error before the part has started */
  readonly certificate: () => TlsMaterial['serving'];
}

/** DNS names of the certificate. */
const servingNames = (service: string, namespace: string): readonly string[] => [
  service,
  `${service}.${namespace}`,
  `${service}.${namespace}.svc`,
  'localhost',
];

/** The material of the Secret, made or renewed when it is time; of several replicas the first one wins. */
const settle = async (options: ServingCertificateOptions): Promise<TlsMaterial> => {
  const { secrets, namespace, service, secretName: name, now } = options;
  const names = servingNames(service, namespace);
  let conflict: unknown;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const found = await secrets.get(name, { namespace }).catch(ignoreGone);
    const present = found && materialOf(found);
    const next = present ? await renewed(present, names, now()) : await createMaterial(names, now());
    if (present && !next) return present;
    if (!next) continue;
    const secret = secretOf({ namespace, name }, next, found);
    try {
      await (found ? secrets.update(secret) : secrets.create(secret));
      return next;
    } catch (error) {
      if (!isConflict(error)) throw error;
      conflict = error;
    }
  }
  throw new Error(`Secret ${namespace}/${name}: others write it without end`, { cause: conflict });
};

/** An API server that is away comes back: a process that ended over it would be started ever more rarely. */
const untilChecked = async (check: () => Promise<void>, stopping: AbortSignal, logger: Logger): Promise<void> => {
  for (let failures = 1; !stopping.aborted; failures++) {
    try {
      return await check();
    } catch (error) {
      if (error instanceof ForeignObjectError) throw error; // that is somebody's to mend
      const level = failures === 1 ? 'warn' : 'debug';
      logger[level]({ error: (error as Error).message, failures }, 'no serving certificate yet; retrying');
      await sleep(backoffDelay(failures, RETRY), undefined, { signal: stopping }).catch(() => undefined);
    }
  }
};

/** A CA and a serving certificate that all replicas share, renewed while the program runs. */
export const servingCertificate = (options: ServingCertificateOptions): ServingCertificatePart => {
  const { configMaps, namespace, secretName, configMapName, logger, checkMs = CHECK_MS } = options;
  let material: TlsMaterial | undefined;
  let timer: NodeJS.Timeout | undefined;
  const stopping = new AbortController();
  const check = async (): Promise<void> => {
    const current = await settle(options);
    // The bundle first: clients know a CA before they meet it.
    await publishBundle(configMaps, { namespace, name: configMapName }, current.bundle);
    if (current.serving.cert === material?.serving.cert) return;
    material = current;
    logger.info({ secret: `${namespace}/${secretName}` }, 'using the serving certificate of the Secret');
  };
  return {
    name: 'serving-certificate',
    start: async () => {
      await untilChecked(check, stopping.signal, logger);
      if (stopping.signal.aborted) return;
      timer = setInterval(() => {
        check().catch((error: unknown) => logger.error({ err: error }, 'cannot renew the serving certificate'));
      }, checkMs);
    },
    stop: () => {
      stopping.abort();
      clearInterval(timer);
    },
    certificate: () => {
      if (material === undefined) throw new Error('there is no serving certificate yet');
      return material.serving;
    },
  };
};
