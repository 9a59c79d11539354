import { X509Certificate } from 'node:crypto';

import { configMaps, secrets } from '@unbounded/kube';
import { type ApiServer, borrowApiServer, until } from '@unbounded/testing';
import { silentLogger } from '@unbounded/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { servingCertificate, type ServingCertificatePart } from './serving-certificate.ts';

const namespace = 'default';
const DAY_MS = 86_400_000;

let kube: ApiServer;
let now = new Date();
const parts: ServingCertificatePart[] = [];
const replica = (secretName: string): ServingCertificatePart => {
  const part = servingCertificate({
    secrets: kube.cluster.client(secrets),
    configMaps: kube.cluster.client(configMaps),
    namespace,
    service: 'status',
    secretName,
    configMapName: 'status-ca',
    now: () => now,
    logger: silentLogger,
    checkMs: 100,
  });
  parts.push(part);
  return part;
};

beforeAll(async () => {
  kube = await borrowApiServer();
});
afterAll(async () => {
  for (const part of parts) await part.stop();
  await kube?.stop();
});

test('replicas that start and renew at once have one certificate, and publish one CA', async () => {
  const replicas = Array.from({ length: 4 }, () => replica('status-tls'));
  await Promise.all(replicas.map(async (part) => part.start()));
  const inUse = (): Set<string> => new Set(replicas.map((part) => part.certificate().cert));
  expect(inUse().size).toBe(1);
  const [before = ''] = inUse();
  const { data } = await kube.cluster.client(configMaps).get('status-ca', { namespace });
  expect(new X509Certificate(before).verify(new X509Certificate(data?.['ca.crt'] ?? '').publicKey)).toBe(true);
  now = new Date(now.getTime() + 61 * DAY_MS);
  await until('all have one other', () => inUse().size === 1 && !inUse().has(before));
  const [after = ''] = inUse();
  const secret = await kube.cluster.client(secrets).get('status-tls', { namespace });
  expect(Buffer.from(secret.data?.['tls.crt'] ?? '', 'base64').toString()).toBe(after);
});

test('a Secret of cert-manager is named and left as it is', async () => {
  const client = kube.cluster.client(secrets);
  const data = { 'tls.crt': 'YQ==', 'tls.key': 'YQ==' };
  const made = await client.create({ metadata: { name: 'theirs', namespace }, type: 'kubernetes.io/tls', data });
  await expect(replica('theirs').start()).rejects.toThrow('Secret default/theirs was not made by status-aggregator');
  expect((await client.get('theirs', { namespace })).metadata.resourceVersion).toBe(made.metadata.resourceVersion);
});
