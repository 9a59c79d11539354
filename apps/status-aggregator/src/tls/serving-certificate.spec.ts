import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';

import type { ConfigMap, Secret } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { createMaterial, renewed } from './renewal.ts';
import { servingCertificate } from './serving-certificate.ts';
import { certificatesOf } from './tls-secret.ts';
import { versionedStore } from './versioned-store.testdata.ts';

const DAY_MS = 86_400_000;
const START = new Date('2026-01-01T00:00:00Z');

const cluster = () => {
  const secrets = versionedStore<Secret>();
  const configMaps = versionedStore<ConfigMap>();
  let now = START;
  const parts: { stop(): unknown }[] = [];
  const start = async (service = 'status', at?: Date) => {
    const part = servingCertificate({
      secrets: secrets.client,
      configMaps: configMaps.client,
      namespace: 'system',
      service,
      secretName: 'status-tls',
      configMapName: 'status-ca',
      now: () => at ?? now,
      logger: silentLogger,
      checkMs: 5,
    });
    parts.push(part);
    await part.start();
    return part;
  };
  const text = (key: string): string =>
    Buffer.from(secrets.objects.get('status-tls')?.data?.[key] ?? '', 'base64').toString();
  return {
    secrets,
    configMaps,
    start,
    text,
    bundle: (): string => configMaps.objects.get('status-ca')?.data?.['ca.crt'] ?? '',
    /** Days after the start. */
    goTo: (days: number) => void (now = new Date(START.getTime() + days * DAY_MS)),
    [Symbol.dispose]: () => parts.forEach((part) => void part.stop()),
  };
};

const daysLeft = (pem: string, from: number): number =>
  Math.round((new X509Certificate(pem).validToDate.getTime() - START.getTime()) / DAY_MS) - from;

test('the first replica makes a CA and a certificate, which the others use', async () => {
  using world = cluster();
  const [a, b] = await Promise.all([world.start(), world.start()]);
  expect(b.certificate()).toEqual(a.certificate());
  expect(world.secrets.writes).toBe(1);
  const serving = new X509Certificate(a.certificate().cert);
  expect(serving.subjectAltName).toBe('DNS:status, DNS:status.system, DNS:status.system.svc, DNS:localhost');
  expect([daysLeft(a.certificate().cert, 0), daysLeft(world.bundle(), 0)]).toEqual([90, 3650]);
  expect(world.secrets.objects.get('status-tls')?.type).toBe('kubernetes.io/tls');
  expect(Object.keys(world.secrets.objects.get('status-tls')?.data ?? {})).toEqual([
    'tls.crt',
    'tls.key',
    'ca.crt',
    'ca.key',
  ]);
});

const connects = async (
  certificate: { cert: string; key: string },
  ca: string,
  servername: string,
): Promise<boolean> => {
  const server = createServer(certificate, (_, response) => response.end('ok')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const outcome = await new Promise<boolean>((resolve) => {
    const options = { host: '127.0.0.1', port, servername, ca, agent: false };
    request(options, () => resolve(true))
      .on('error', () => resolve(false))
      .end();
  });
  server.closeAllConnections();
  server.close();
  return outcome;
};

// Certificates of the real clock: TLS compares with it.
test('clients that trust the published CA connect by each name, and by no other', async () => {
  using world = cluster();
  using stranger = cluster();
  const { certificate } = await world.start('status', new Date());
  await stranger.start('status', new Date());
  for (const name of ['status', 'status.system.svc', 'localhost'])
    expect(await connects(certificate(), world.bundle(), name)).toBe(true);
  expect(await connects(certificate(), world.bundle(), 'other.system.svc')).toBe(false);
  expect(await connects(certificate(), stranger.bundle(), 'status')).toBe(false);
});

test('a certificate is renewed 30 days before its end, once for all replicas; the CA stays', async () => {
  using world = cluster();
  const [a, b] = [await world.start(), await world.start()];
  const [before, ca] = [a.certificate(), world.bundle()];
  world.goTo(59);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(a.certificate()).toBe(before);
  world.goTo(61);
  await until('both have another', () => a.certificate() !== before && b.certificate().cert === a.certificate().cert);
  expect(daysLeft(a.certificate().cert, 61)).toBe(90);
  expect(world.secrets.writes).toBe(2);
  expect(world.bundle()).toBe(ca);
});

test('a new CA is published a year before the end of the old one, and signs from the next certificate on', async () => {
  using world = cluster();
  const part = await world.start();
  const old = certificatesOf(world.bundle())[0]!;
  world.goTo(3286);
  await until('both are published', () => certificatesOf(world.bundle()).length === 2);
  const next = certificatesOf(world.bundle())[0]!;
  const signedBy = (ca: string): boolean =>
    new X509Certificate(part.certificate().cert).verify(new X509Certificate(ca).publicKey);
  await until('a certificate of that day', () => daysLeft(part.certificate().cert, 3286) === 90);
  expect([signedBy(old), signedBy(next)]).toEqual([true, false]);
  world.goTo(3286 + 61);
  await until('the new CA signs', () => signedBy(next));
  expect(certificatesOf(world.bundle())).toHaveLength(2);
  world.goTo(3651);
  await until('the old one is no longer trusted', () => certificatesOf(world.bundle()).length === 1);
  expect(world.bundle().trim()).toBe(next.trim());
});

test('a certificate that is not valid yet, of a replica whose clock was ahead, is replaced', async () => {
  const material = await createMaterial(['status'], new Date(START.getTime() + 400 * DAY_MS));
  const next = await renewed(material, ['status'], START);
  expect(new X509Certificate(next!.serving.cert).validFromDate.getTime()).toBeLessThan(START.getTime());
  expect(new X509Certificate(next!.serving.cert).checkIssued(new X509Certificate(next!.ca.cert))).toBe(true);
  expect(await renewed(next!, ['status'], START)).toBeUndefined();
});

test('another name of the Service gets another certificate of the same CA', async () => {
  using world = cluster();
  await world.start();
  const ca = world.bundle();
  const { certificate } = await world.start('view');
  expect(new X509Certificate(certificate().cert).subjectAltName).toContain('DNS:view.system.svc');
  expect(world.bundle()).toBe(ca);
});

test('a Secret that is damaged, or of somebody else, is named and left as it is', async () => {
  using world = cluster();
  await world.start();
  const good = world.secrets.objects.get('status-tls')!;
  const data = good.data ?? {};
  const other = { ...good, metadata: { name: 'status-tls', namespace: 'system' } };
  for (const [secret, message] of [
    [other, 'was not made by status-aggregator'],
    [{ ...good, type: 'Opaque' }, 'was not made by status-aggregator'],
    [{ ...good, data: { ...data, 'ca.key': '' } }, 'ca.key is missing'],
    [{ ...good, data: { ...data, 'tls.crt': data['ca.crt']! } }, 'do not belong together'],
    [{ ...good, data: { ...data, 'tls.crt': 'AAAA' } }, 'is damaged'],
  ] as const) {
    const stored = world.secrets.put(secret);
    await expect(world.start()).rejects.toThrow(message);
    await expect(world.start()).rejects.toThrow('Secret system/status-tls');
    expect(world.secrets.objects.get('status-tls')).toBe(stored);
  }
});

test('a ConfigMap of somebody else is left as it is', async () => {
  using world = cluster();
  world.configMaps.put({ metadata: { name: 'status-ca', namespace: 'system' }, data: { 'ca.crt': 'theirs' } });
  await expect(world.start()).rejects.toThrow('ConfigMap system/status-ca was not made by status-aggregator');
  expect(world.bundle()).toBe('theirs');
});

test('an API server that is away at the start is waited for, until it is back or the program ends', async () => {
  const secrets = versionedStore<Secret>();
  let isAway = true;
  const get: typeof secrets.client.get = async (...words) => {
    if (isAway) throw new Error('connection refused');
    return secrets.client.get(...words);
  };
  const open = () =>
    servingCertificate({
      ...{ secrets: { ...secrets.client, get }, configMaps: versionedStore<ConfigMap>().client },
      ...{ namespace: 'system', service: 'status', secretName: 'status-tls', configMapName: 'status-ca' },
      ...{ now: () => START, logger: silentLogger },
    });
  const part = open();
  const started = part.start();
  const other = open();
  const ended = other.start();
  await other.stop();
  await ended;
  expect(() => part.certificate()).toThrow('there is no serving certificate yet');
  isAway = false;
  await started;
  expect(part.certificate().cert).toContain('BEGIN CERTIFICATE');
  await part.stop();
});
