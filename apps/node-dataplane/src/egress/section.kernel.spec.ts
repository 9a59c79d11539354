import { setTimeout as sleep } from 'node:timers/promises';
import { DEVICES } from '@unbounded/config/ownership';
import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import type { SectionPass } from '../section.port.ts';
import { ADDRESSES, addressOf, FAMILIES } from './egress-network.testdata.ts';
import { addressesInUse } from './grants.ts';
import { NONE, openSectionBed, owned, pod, routes, serving, slice, steered } from './section-bed.testdata.ts';

/** The section on both nodes, from slices to packets. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

test('without slices and pods nothing is made', async () => {
  const { report } = await (await open('worker')).pass();
  expect(report).toEqual({ problems: [] });
  expect(await bed.network.nodes.worker.nft.listTables()).not.toContainEqual({
    family: 'inet',
    name: 'unbounded_egress',
  });
  expect(worlds.worker.additions).toBeUndefined();
});

test('a pod that a slice lists leaves with its address by another node, and both say so; without slices all is as it was', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod'), pod('other')] };
  worlds.gateway.slices = [serving()];
  const [worker, gateway] = [await open('worker'), await open('gateway')];
  const [first, second] = [await worker.pass(), await settle('gateway', gateway)];
  expect(first.report).toMatchObject({
    problems: [],
    conditions: [{ type: 'UnboundedEgress', status: 'True', message: expect.stringContaining('1 pod of this node') }],
  });
  expect(second.report).toMatchObject({
    problems: [],
    conditions: [{ status: 'True', message: expect.stringContaining('the node has 2 egress addresses') }],
  });
  expect(worlds.worker.additions).toEqual({ devices: [DEVICES.egress] });
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  expect(await asked('other')).toEqual(ADDRESSES.worker);
  bed.network.sources('worker');
  worlds.worker.slices = [];
  worlds.gateway.slices = [];
  for (const section of [worker, gateway]) await section.pass(); // asks whether a rule selects it still
  for (const section of [worker, gateway]) expect((await section.pass()).report).toEqual({ problems: [] });
  for (const { net, nft } of Object.values(bed.network.nodes)) {
    expect((await nft.listTables()).filter(({ name }) => name === 'unbounded_egress')).toEqual([]);
    expect(await net.routes.list({ protocol: 118 })).toEqual([]);
    expect((await net.rules.list()).filter(({ protocol }) => protocol === 118)).toEqual([]);
    expect((await net.addresses.list()).filter(({ protocol }) => protocol === 118)).toEqual([]);
    expect(await net.links.get(DEVICES.egress)).toBeUndefined();
  }
});

test('the owner shows its addresses, what leaves by each rule, and ports that run out', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway = { ...worlds.gateway, slices: [serving()], portWatch: { everyMs: 0, threshold: 1 / 64_512 } };
  await (await open('worker')).pass();
  const gateway = await open('gateway');
  await settle('gateway', gateway);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  let last: SectionPass | undefined;
  await until('the node says so', async () => {
    last = await gateway.pass();
    return last.report.problems.length === ADDRESSES.first.length;
  });
  const message = expect.stringContaining('at least 1 of its 64512 ports are in use to TCP 10.1.0.99:7000');
  expect(last?.report.conditions).toMatchObject([{ status: 'False', reason: 'EgressPortsExhausting', message }]);
  const text = await worlds.gateway.metrics!.render();
  for (const address of ADDRESSES.first) {
    expect(text).toContain(`unbounded_egress_address_held{address="${address}"} 1\n`);
    for (const direction of ['out', 'in'])
      expect(text).toMatch(
        new RegExp(
          `rule_packets_total\\{rule="StaticEgressIP/shop/web/0",address="${address}",direction="${direction}"\\} [1-9]`,
        ),
      );
  }
});

test('the address of a pod is where the CNI plugin put it, whatever a slice says', async () => {
  const [entry] = steered('gateway').spec.pods!;
  const forged = slice('worker', {
    routes: routes('gateway'),
    pods: [
      { ...entry!, addresses: [...ADDRESSES.other] },
      { ...entry!, uid: 'uid-gone', addresses: [...ADDRESSES.other] },
    ],
  });
  worlds.worker = { ...worlds.worker, slices: [forged], pods: [pod('pod'), pod('other')] };
  worlds.gateway.slices = [serving()];
  for (const node of ['worker', 'gateway'] as const) await settle(node, await open(node));
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  expect(await asked('other')).toEqual(ADDRESSES.worker);
});

test('a pod whose address slices list with another pod waits until they do not: owners go by the routes of that one', async () => {
  const [entry] = steered('gateway').spec.pods!;
  const former = { ...entry!, uid: 'uid-former', addresses: [...ADDRESSES.pod] };
  const twice = slice('worker', { routes: routes('gateway'), pods: [entry!, former] });
  worlds.worker = { ...worlds.worker, slices: [twice], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  for (const node of ['worker', 'gateway'] as const) await settle(node, await open(node));
  expect(await asked('pod', 1)).toEqual(NONE);
  worlds.worker.slices = [steered('gateway')];
  await sections[0]!.pass();
  expect(await asked('pod')).toEqual(ADDRESSES.first);
});

test('a connection from before the rule goes on with the address of the rule, and with that of the node behind its end', async () => {
  worlds.worker.pods = [pod('pod'), pod('other')];
  const [worker, gateway] = [await open('worker'), await open('gateway')];
  const send = async (from: 'pod' | 'other', port: number): Promise<void> => {
    for (const family of FAMILIES) await bed.network.send(from, addressOf('partner', family), port);
  };
  const pass = async (): Promise<void> => {
    await worker.pass();
    await settle('gateway', gateway);
    await worker.pass();
  };
  const sources = (): string[] => [...bed.network.sources('worker'), ...bed.network.sources('gateway')].sort();
  for (const from of ['pod', 'other'] as const) await send(from, 5001);
  expect(sources()).toEqual([...ADDRESSES.worker].sort());
  worlds.worker.slices = [steered('gateway')];
  worlds.gateway.slices = [serving()];
  await pass();
  await send('pod', 5001);
  expect(sources()).toEqual([...ADDRESSES.first].sort());
  worlds.worker.slices = [];
  worlds.gateway.slices = [];
  await pass();
  await send('pod', 5001);
  expect(sources()).toEqual([...ADDRESSES.worker].sort());
});

test('slices of a Node that had the name before are not heeded', async () => {
  const former = steered('gateway');
  worlds.worker = {
    ...worlds.worker,
    slices: [{ ...former, spec: { ...former.spec, nodeUID: 'uid-former' } }],
    pods: [pod('pod')],
  };
  expect((await (await open('worker')).pass()).report).toEqual({ problems: [] });
});

test('an agent that starts while the objects are away goes on with the last plan, for the pods that are there', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod'), pod('other')] };
  worlds.gateway.slices = [serving()];
  for (const node of ['worker', 'gateway'] as const) await settle(node, await open(node));
  for (const section of sections.splice(0)) await section.stop();
  worlds.worker.slices = undefined;
  worlds.gateway.slices = undefined;
  for (const node of ['worker', 'gateway'] as const)
    expect((await (await open(node)).pass()).report.problems).toEqual([]);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  worlds.worker.pods = [pod('other')];
  for (const section of sections) await section.pass();
  expect(await asked('pod')).toEqual(ADDRESSES.worker); // another may have its address now
});

test('an agent that starts before connectivity has told anything leaves the tables as they are', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  for (const node of ['worker', 'gateway'] as const) await settle(node, await open(node));
  for (const section of sections.splice(0)) await section.stop();
  const changed: string[] = [];
  const watches = Object.values(bed.network.nodes).map(({ nft }) =>
    nft.monitor('inet', 'unbounded_egress', { onChange: () => void changed.push('inet') }),
  );
  for (const node of ['worker', 'gateway'] as const) {
    worlds[node] = { ...worlds[node], additions: undefined, isConnectivitySilent: true };
    const section = await open(node);
    expect(worlds[node].additions).toEqual({ devices: [DEVICES.egress] });
    await section.pass();
  }
  await sleep(100);
  for (const watch of watches) watch.close();
  expect(changed).toEqual([]);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
});

test('a pod of which nothing is known reaches the cluster alone', async () => {
  worlds.worker = { ...worlds.worker, slices: undefined, pods: [pod('other')] };
  worlds.worker.slices = [steered('gateway')];
  worlds.worker.pods = [pod('pod'), pod('other')];
  await (await open('worker')).pass();
  for (const section of sections.splice(0)) await section.stop();
  worlds.worker.kept = undefined; // the disk was lost, and the kernel has the tables of before
  await (await open('worker')).pass();
  expect(await asked('other', 0.5)).toEqual(NONE);
  expect(bed.network.sources('worker')).toEqual([]);
});

test('an address that is to be released is silent, and another owner takes it over', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  const [worker, gateway] = [await open('worker'), await open('gateway')];
  await worker.pass();
  await settle('gateway', gateway);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  worlds.gateway.slices = [slice('gateway', { owned: owned('first', true) })];
  await gateway.pass();
  bed.network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
  expect(
    FAMILIES.map((family) => bed.network.output('partner', 'ping', '-qc1', '-w1', addressOf('first', family))),
  ).toEqual([4, 6].map(() => expect.stringContaining('100% packet loss')));
  expect(bed.network.run('partner', 'ip', 'neigh', 'show', ADDRESSES.first[0])).not.toContain('lladdr');
  const own = steered('worker');
  worlds.worker.slices = [{ ...own, spec: { ...own.spec, owned: owned() } }];
  await settle('worker', worker);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  expect(bed.network.sources('gateway')).toEqual([...ADDRESSES.first].sort());
});

test('an agent that stands still: its owner falls silent in ARP, in neighbor discovery and in what it forwards', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.holdMs = 3000; // the agents of this process renew nothing while it waits for neighbors
  worlds.gateway.slices = [serving()];
  for (const node of ['worker', 'gateway'] as const) await settle(node, await open(node));
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  // Neighbors ask, and are answered: what is sent to the address is not.
  const neighbors = (): string[] => {
    bed.network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
    const pings = FAMILIES.map((family) => `ping -qc1 -W0.5 ${addressOf('first', family)} &`);
    bed.network.output('partner', 'sh', '-c', `${pings.join(' ')} wait`); // at once: the time of the right runs on
    return ADDRESSES.first.map((address) => bed.network.run('partner', 'ip', 'neigh', 'show', address));
  };
  expect(neighbors()).toEqual([4, 6].map(() => expect.stringContaining('lladdr')));
  for (const section of sections) await section.stop(); // nobody renews any more
  const isClosed = async (): Promise<boolean> => {
    const inUse = await addressesInUse(bed.network.nodes.gateway.nft);
    return ADDRESSES.first.every((address) => !inUse.has(address));
  };
  await until('the fence is closed', isClosed, 12_000);
  bed.network.sources('gateway');
  expect(await asked('pod', 0.3)).toEqual(NONE);
  expect(bed.network.sources('gateway')).toEqual([]);
  expect(neighbors()).toEqual([4, 6].map(() => expect.not.stringContaining('lladdr')));
}, 30_000);

test('what others change comes back with the next pass', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  const both = [await open('worker'), await open('gateway')] as const;
  await both[0].pass();
  await settle('gateway', both[1]);
  const repaired = async (): Promise<void> => {
    bed.network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
    expect((await both[0].pass()).report.problems).toEqual([]);
    expect((await settle('gateway', both[1])).report.problems).toEqual([]);
    expect(await asked('pod')).toEqual(ADDRESSES.first);
  };
  for (const damage of [
    'for family in inet ip ip6 arp; do nft delete table $family unbounded_egress; done',
    'ip rule flush protocol 118; ip -6 rule flush protocol 118; ip route flush table all protocol 118',
    'ip link del egress0',
  ]) {
    for (const node of ['worker', 'gateway'] as const) bed.network.run(node, 'sh', '-c', damage);
    expect(await asked('pod', 0.3)).toEqual(NONE);
    await repaired();
  }
  bed.network.run('gateway', 'ip', 'addr', 'del', `${ADDRESSES.first[0]}/32`, 'dev', 'eth0');
  await repaired();
});

test('an address that another host has is not taken, its MAC is said, and the node reaches that host as before', async () => {
  bed.network.run('partner', 'ip', 'addr', 'add', `${ADDRESSES.first[0]}/32`, 'dev', 'lan');
  worlds.gateway.slices = [serving()];
  const { report } = await settle('gateway', await open('gateway'));
  const reach = `ping -c 1 -W 1 ${ADDRESSES.first[0]} > /dev/null && echo reached || true`;
  expect(bed.network.run('gateway', 'sh', '-c', reach)).toBe('reached\n');
  bed.network.run('partner', 'ip', 'addr', 'del', `${ADDRESSES.first[0]}/32`, 'dev', 'lan');
  expect(report.problems).toEqual([
    {
      reason: 'EgressAddressInUse',
      message: expect.stringContaining('10.1.0.200: the host with MAC 02:00:00:00:00:99'),
    },
  ]);
  expect(bed.network.run('gateway', 'ip', '-br', 'addr', 'show', 'eth0')).not.toContain(ADDRESSES.first[0]);
});

test('an agent that starts announces the addresses that one before it took: that one may have ended before it did', async () => {
  const [address] = ADDRESSES.first;
  worlds.gateway.slices = [serving()];
  await settle('gateway', await open('gateway'));
  await sections.pop()!.stop();
  bed.network.run('partner', 'sysctl', '-qw', 'net.ipv4.neigh.lan.locktime=0');
  bed.network.run(
    'partner',
    ...`ip neigh replace ${address} lladdr 02:00:00:00:00:66 dev lan nud reachable`.split(' '),
  );
  await (await open('gateway')).pass();
  const neighbor = (): string => bed.network.run('partner', 'ip', 'neigh', 'show', address);
  await until('the neighbor knows the new owner', () => !neighbor().includes('00:66'), 5000);
  expect(neighbor()).toContain('lladdr');
});

test('an address outside of every network of the node is a problem that names it', async () => {
  const far = { address: '192.0.2.77', epoch: 1, announce: 'L2' } as const;
  worlds.gateway.slices = [serving({ owned: [far, { ...far, address: '192.0.2.78', announce: 'None' }] })];
  const { report } = await (await open('gateway')).pass();
  expect(report.problems).toEqual([
    { reason: 'EgressAddressUnreachable', message: expect.stringContaining('192.0.2.77: the node has no device') },
  ]);
});
