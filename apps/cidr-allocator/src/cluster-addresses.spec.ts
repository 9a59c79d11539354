import { formatAddress, formatPrefix } from '@unbounded/ip';
import { ApiError, type EndpointSlice, type ResourceClient, type Service, type ServiceCidr } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { createClusterAddresses, MAX_AGE_MS } from './cluster-addresses.ts';

const refused = (status: number) => () => Promise.reject(new ApiError('GET /x', status, { reason: 'x' }));
const endpoints = async (): Promise<EndpointSlice> => ({
  ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata: { name: 'kubernetes' } },
  ...{ addressType: 'IPv4', endpoints: [{ addresses: ['192.0.2.1'] }] },
});
const service = async (): Promise<Service> => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'kubernetes' } },
  spec: { clusterIPs: ['10.96.0.1'] },
});

/** A reader whose three answers can be changed. */
const reader = (answers: { endpoints?: () => Promise<EndpointSlice>; cidrs?: () => Promise<ServiceCidr[]> }) => {
  const clock = { ms: 0 };
  const read = createClusterAddresses({
    endpointSlices: { get: () => (answers.endpoints ?? endpoints)() } as unknown as ResourceClient<EndpointSlice>,
    services: { get: service } as unknown as ResourceClient<Service>,
    serviceCidrs: { listAll: () => (answers.cidrs ?? refused(404))() } as unknown as ResourceClient<ServiceCidr>,
    given: [],
    logger: silentLogger,
    now: () => clock.ms,
  });
  const text = async (): Promise<string> => {
    const { apiServers, services } = await read(AbortSignal.timeout(1000));
    return `${apiServers.map(formatAddress).join()} ${services.map(formatPrefix).join()}`;
  };
  return { clock, text };
};

test.each([403, 500])(
  'nothing is known before everything was read once: a first answer %i is no empty list',
  async (status) => {
    const answers: Parameters<typeof reader>[0] = { endpoints: refused(status) };
    const { text } = reader(answers);
    await expect(text()).rejects.toThrow(ApiError);
    await expect(text()).rejects.toThrow(ApiError); // asked again at once, and not after MAX_AGE_MS
    delete answers.endpoints;
    expect(await text()).toBe('192.0.2.1 10.96.0.1/32');
  },
);

test('what cannot be read later stays as it was', async () => {
  const answers: Parameters<typeof reader>[0] = {};
  const { clock, text } = reader(answers);
  await text();
  answers.endpoints = refused(500);
  clock.ms = MAX_AGE_MS;
  expect(await text()).toBe('192.0.2.1 10.96.0.1/32');
});

test('a server without ServiceCIDRs, and without an EndpointSlice of itself, has none', async () => {
  expect(await reader({ endpoints: refused(404) }).text()).toBe(' 10.96.0.1/32');
});
