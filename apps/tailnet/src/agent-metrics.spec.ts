import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { NoDeviceError } from './admission.ts';
import { agentMetrics, type Observation, type ObservedDevice } from './agent-metrics.ts';
import { type CniRequests, InvalidRequestError } from './cni-requests.ts';
import { measuredRequests } from './measured-requests.ts';

const seriesOf = async (metrics: ReturnType<typeof createMetrics>, pattern: RegExp): Promise<string[]> =>
  (await metrics.render()).split('\n').filter((line) => line.startsWith('unbounded_') && pattern.test(line));

const device = (podUID: string, state: ObservedDevice['state'], starts?: number): ObservedDevice => ({
  ...{ podUID, state },
  keeper: starts === undefined ? undefined : { netns: '/run/netns/a', hasIPv6: true, starts },
});

test('devices are counted by state as they are when they are read, and a state that none is in is 0', async () => {
  const metrics = createMetrics();
  let seen: Observation = { devices: [device('a', 'Running'), device('b', 'Running')], pendingRemovals: 2 };
  agentMetrics(metrics).observe(() => seen);
  expect(await seriesOf(metrics, /Running|pending/)).toEqual([
    'unbounded_tailnet_agent_devices{state="Running"} 2',
    'unbounded_tailnet_agent_pending_removals 2',
  ]);
  seen = { devices: [device('b', 'NeedsLogin')], pendingRemovals: 0 };
  expect(await seriesOf(metrics, /agent_devices|pending/)).toEqual([
    'unbounded_tailnet_agent_devices{state="NoContainer"} 0',
    'unbounded_tailnet_agent_devices{state="NoRecord"} 0',
    'unbounded_tailnet_agent_devices{state="Starting"} 0',
    'unbounded_tailnet_agent_devices{state="NeedsLogin"} 1',
    'unbounded_tailnet_agent_devices{state="NeedsApproval"} 0',
    'unbounded_tailnet_agent_devices{state="Running"} 0',
    'unbounded_tailnet_agent_devices{state="Stopped"} 0',
    'unbounded_tailnet_agent_pending_removals 0',
  ]);
});

test('restarts are those between two readings, and the series has the name of no pod', async () => {
  const metrics = createMetrics();
  let starts = 1;
  agentMetrics(metrics).observe(() => ({ devices: [device('pod-a', 'Running', starts)], pendingRemovals: 0 }));
  await metrics.render();
  starts = 3;
  const text = await metrics.render();
  expect(text).toContain('\nunbounded_tailnet_agent_process_restarts_total 2\n');
  expect(text).not.toContain('pod-a');
});

test('the time until a device is up is counted by whether it had to log in', async () => {
  const metrics = createMetrics();
  const { up } = agentMetrics(metrics);
  up(0.7, 'new');
  up(0.2, 'kept');
  expect(await seriesOf(metrics, /le="0.25"|le="0.8"|_sum/)).toEqual([
    'unbounded_tailnet_agent_device_up_seconds_bucket{le="0.25",identity="new"} 0',
    'unbounded_tailnet_agent_device_up_seconds_bucket{le="0.8",identity="new"} 1',
    'unbounded_tailnet_agent_device_up_seconds_sum{identity="new"} 0.7',
    'unbounded_tailnet_agent_device_up_seconds_bucket{le="0.25",identity="kept"} 1',
    'unbounded_tailnet_agent_device_up_seconds_bucket{le="0.8",identity="kept"} 1',
    'unbounded_tailnet_agent_device_up_seconds_sum{identity="kept"} 0.2',
  ]);
});

test('requests are counted by how they end, and end as they did', async () => {
  const metrics = createMetrics();
  const errors = [new InvalidRequestError('a'), new NoDeviceError('b'), new Error('c')];
  const requests: CniRequests = {
    add: async () => {
      const error = errors.shift();
      if (error) throw error;
      return { tailscaleIpv4: '100.64.0.1', tailscaleIpv6: '', tailscaleHostname: 'h' };
    },
    del: () => {
      throw new Error('the disk is full');
    },
    check: ({ containerId }) => ({ healthy: containerId === 'good', message: '' }),
  };
  const measured = measuredRequests(requests, agentMetrics(metrics));
  const container = {
    podNamespace: 'n',
    podName: 'p',
    podUid: 'u',
    containerId: 'good',
    netns: '/n',
    ifName: 'ts0',
    clusterIp: '',
  };
  const { signal } = new AbortController();
  for (const message of ['a', 'b', 'c']) await expect(measured.add(container, signal)).rejects.toThrow(message);
  expect(await measured.add(container, signal)).toMatchObject({ tailscaleIpv4: '100.64.0.1' });
  expect(() => measured.del(container)).toThrow('the disk is full');
  expect([measured.check(container).healthy, measured.check({ ...container, containerId: 'bad' }).healthy]).toEqual([
    true,
    false,
  ]);
  expect(await seriesOf(metrics, /requests_total|seconds_count\{method/)).toEqual([
    'unbounded_tailnet_agent_cni_requests_total{method="Add",result="InvalidRequest"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Add",result="NoDevice"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Add",result="Unavailable"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Add",result="Success"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Del",result="Unavailable"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Check",result="Success"} 1',
    'unbounded_tailnet_agent_cni_requests_total{method="Check",result="Unhealthy"} 1',
    'unbounded_tailnet_agent_cni_request_seconds_count{method="Add"} 4',
    'unbounded_tailnet_agent_cni_request_seconds_count{method="Del"} 1',
    'unbounded_tailnet_agent_cni_request_seconds_count{method="Check"} 2',
  ]);
});
