import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';
import { afterEach, expect, test } from 'vitest';
import { createTailnetCni, type TailnetCni, TailnetCniError } from './client.ts';
import { type AddRequest, tailnetDefinition } from './service.ts';

const shapeOf = (definition: PackageDefinition): unknown =>
  Object.fromEntries(
    Object.entries(definition).map(([name, one]) => [
      name,
      'type' in one
        ? (one.type as { field: { name: string; number: number; type: string }[] }).field.map((field) => [
            field.name,
            field.number,
            field.type,
          ])
        : Object.entries(one).map(([method, { path, requestType, responseType }]) => [
            ...[
              method,
              path,
              (requestType.type as { name: string }).name,
              (responseType.type as { name: string }).name,
            ],
          ]),
    ]),
  );

test('the service is that of tailscale-cni.proto', () => {
  const written = loadSync(join(import.meta.dirname, 'tailscale-cni.proto'), { keepCase: false, defaults: true });
  expect(shapeOf(tailnetDefinition())).toEqual(shapeOf(written));
});

const folder = mkdtempSync(join(tmpdir(), 'tailnet-cni-'));
let server: Server | undefined;
let client: TailnetCni | undefined;
afterEach(() => {
  client?.[Symbol.dispose]();
  server?.forceShutdown();
  rmSync(folder, { recursive: true, force: true });
});

const request: AddRequest = {
  ...{ containerId: 'c1', netns: '/run/netns/a', ifName: 'eth0', podName: 'web-0' },
  ...{ podNamespace: 'shop', podUid: 'u1', clusterIp: '10.1.0.2' },
};

test('a call says what was refused, and what may be tried later', async () => {
  const socket = join(mkdtempSync(join(tmpdir(), 'tailnet-cni-')), 'daemon.sock');
  client = createTailnetCni(socket);
  const options = { timeoutMs: 2000 };
  const noAnswer = { kind: 'later', message: expect.stringContaining(`does not answer at ${socket}`) };
  await expect(client.add(request, { timeoutMs: 50 })).rejects.toMatchObject(noAnswer);

  const seen: unknown[] = [];
  server = new Server();
  server.addService(
    tailnetDefinition()['tailscalecni.TailscaleCNI'] as ServiceDefinition,
    {
      Add: ({ request: asked }: { request: AddRequest }, reply: (...answer: unknown[]) => void) => {
        seen.push(asked);
        if (asked.podName === 'none') reply({ code: status.FAILED_PRECONDITION, details: 'it does not join' });
        else reply(null, { tailscaleIpv4: '100.64.0.1', tailscaleHostname: 'k8s-shop-web-0' });
      },
      Del: (_: unknown, reply: (...answer: unknown[]) => void) => reply(null, {}),
      Check: () => undefined,
    } as never,
  );
  await new Promise<void>((resolve, reject) =>
    server!.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  await expect(client.add(request, { timeoutMs: 5000 })).resolves.toEqual({
    ...{ tailscaleIpv4: '100.64.0.1', tailscaleIpv6: '', tailscaleHostname: 'k8s-shop-web-0' },
  });
  expect(seen).toEqual([request]);
  await expect(client.add({ ...request, podName: 'none' }, options)).rejects.toThrow(
    new TailnetCniError('none', 'it does not join'),
  );
  const container = { containerId: 'c1', netns: '/run/netns/a', ifName: 'eth0' };
  await expect(client.del(container, options)).resolves.toBeUndefined();
  await expect(client.check(container, { timeoutMs: 50 })).rejects.toMatchObject({ kind: 'later' });
  const ending = AbortSignal.timeout(20);
  await expect(client.check(container, { timeoutMs: 5000, signal: ending })).rejects.toMatchObject({ kind: 'later' });
});
