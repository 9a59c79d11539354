import { expect, test } from 'vitest';
import type { OverlayTraffic } from '../../kernel/overlay-traffic.ts';
import type { Firewalld } from './firewalld.ts';
import { type FoundObjects, NO_OBJECTS, type Objects, planFirewalld, type Step } from './firewalld.plan.ts';
import { createFirewalldOpenings } from './openings.ts';

/** Over a firewalld that holds what it is told. */

const traffic: OverlayTraffic = {
  devices: ['cbr0', 'vxlan0'],
  peers: ['10.1.0.20'],
  peerPorts: [4789],
  peerProtocols: [],
  openPorts: [],
  entries: [],
  hasIpv6: true,
};

const openings = (over: Partial<Firewalld> = {}, found: Partial<FoundObjects> = {}) => {
  const state = { runtime: NO_OBJECTS, permanent: NO_OBJECTS, ...found, steps: [] as Step[], reloads: 0, nowMs: 0 };
  const put = (objects: Objects, { kind, name }: Step, settings?: object): Objects => {
    const { [name]: former, ...rest } = objects[kind];
    return { ...objects, [kind]: settings ? { ...rest, [name]: { ...former, ...settings } } : rest };
  };
  const firewalld: Firewalld = {
    isRunning: async () => true,
    read: async () => ({ permanent: state.permanent, runtime: state.runtime }),
    devicesOfOthers: async () => new Map(),
    checksReversePaths: async () => false,
    async take(step) {
      state.steps.push(step);
      if (step.do === 'remove') state.permanent = put(state.permanent, step);
      else state[step.store] = put(state[step.store], step, step.settings);
    },
    async reload() {
      state.reloads += 1;
      state.runtime = state.permanent;
    },
    ...over,
  };
  return { state, ...createFirewalldOpenings(firewalld, () => state.nowMs) };
};

test('a host without firewalld has no problem, and nothing is asked', async () => {
  const { ensure } = openings({ isRunning: async () => false, read: () => Promise.reject(new Error('asked')) });
  expect(await ensure('Accept', traffic)).toEqual({ isRunning: false, isOpen: undefined, problems: [], events: [] });
});

test('until the traffic is known what stands stays', async () => {
  const { state, ensure } = openings();
  expect(await ensure('Accept', undefined)).toMatchObject({ isRunning: true, isOpen: undefined, problems: [] });
  expect(state.steps).toEqual([]);
});

test('it is reloaded once for objects that are new, and an Event says so', async () => {
  const { state, ensure } = openings();
  expect((await ensure('Accept', traffic)).events.map(({ reason }) => reason)).toEqual(['HostFirewallOpened']);
  expect(await ensure('Accept', traffic)).toEqual({ isRunning: true, isOpen: true, problems: [], events: [] });
  expect(await ensure('Accept', { ...traffic, peers: ['10.1.0.21'] })).toMatchObject({ isOpen: true, events: [] });
  expect(state.reloads).toBe(1);
  expect(state.runtime).toEqual(planFirewalld({ ...traffic, peers: ['10.1.0.21'] }));
});

test('a reload that does not help is not repeated for ten minutes, since it ends what is set at runtime alone', async () => {
  let reloads = 0;
  const { state, ensure } = openings({ reload: async () => void (reloads += 1) });
  await ensure('Accept', traffic);
  for (state.nowMs = 1; state.nowMs < 600_000; state.nowMs += 60_000)
    expect((await ensure('Accept', traffic)).problems[0]).toMatchObject({
      message: expect.stringContaining('firewall-cmd --check-config') as string,
    });
  expect(reloads).toBe(1);
  state.nowMs = 600_000;
  await ensure('Accept', traffic);
  expect(reloads).toBe(2);
});

test('reporting takes away what accepting made, and names the devices that are in no zone', async () => {
  const { state, ensure } = openings({ devicesOfOthers: async () => new Map([['cbr0', 'trusted']]) });
  state.permanent = state.runtime = planFirewalld(traffic);
  expect((await ensure('Report', traffic)).problems).toMatchObject([
    { reason: 'HostFirewallBlocks', message: expect.stringContaining('overlay: vxlan0 in no zone') as string },
  ]);
  expect(state.runtime).toEqual(NO_OBJECTS);
});

test('a host whose administrator has all devices in a zone is told nothing', async () => {
  const devicesOfOthers = async () => new Map(traffic.devices.map((device) => [device, 'trusted']));
  const { state, ensure } = openings({ devicesOfOthers });
  expect(await ensure('Report', traffic)).toEqual({ isRunning: true, isOpen: true, problems: [], events: [] });
  expect(state.reloads).toBe(0);
});

test('a device in a zone of somebody else stays there, and is reported', async () => {
  const { state, ensure } = openings({ devicesOfOthers: async () => new Map([['cbr0', 'work']]) });
  const { isOpen, problems } = await ensure('Accept', traffic);
  expect([isOpen, problems.map(({ message }) => message)]).toEqual([
    false,
    [expect.stringContaining('firewall-cmd --zone=work --remove-interface=cbr0')],
  ]);
  expect(state.runtime.zone['unbounded']!['interfaces']).toEqual(['vxlan0']);
});

test('a check of reverse paths is reported where there is IPv6', async () => {
  const { ensure } = openings({ checksReversePaths: async () => true });
  expect((await ensure('Accept', traffic)).problems[0]!.message).toContain('IPv6_rpfilter=no');
  expect((await ensure('Accept', { ...traffic, hasIpv6: false })).problems).toEqual([]);
});

test('what firewalld refuses is reported with its own words', async () => {
  const { ensure } = openings({ take: () => Promise.reject(new Error('ACCESS_DENIED: lockdown is enabled')) });
  expect((await ensure('Accept', traffic)).problems).toEqual([
    {
      reason: 'HostFirewallNotManaged',
      message: 'firewalld: ACCESS_DENIED: lockdown is enabled; what it drops of the overlay stays dropped',
    },
  ]);
});
