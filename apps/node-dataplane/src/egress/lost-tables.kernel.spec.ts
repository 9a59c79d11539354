import { DEVICES, EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { expect, test } from 'vitest';
import { ADDRESSES, addressOf, FAMILIES } from './egress-network.testdata.ts';
import { openSectionBed, owned, pod, serving, slice, steered } from './section-bed.testdata.ts';

/** What an agent finds that comes back to a node where others have taken away a part of what it made: everything that is left goes. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

const NODES = ['worker', 'gateway'] as const;
const protocol = EGRESS_ROUTE_PROTOCOL;

const expectNothingLeft = async (): Promise<void> => {
  for (const { net, nft } of Object.values(bed.network.nodes)) {
    expect((await nft.listTables()).filter(({ name }) => name === 'unbounded_egress')).toEqual([]);
    expect(await net.routes.list({ protocol })).toEqual([]);
    expect((await net.rules.list()).filter((rule) => rule.protocol === protocol)).toEqual([]);
    expect((await net.addresses.list()).filter((address) => address.protocol === protocol)).toEqual([]);
    expect(await net.links.get(DEVICES.egress)).toBeUndefined();
  }
};

test.each([
  ['with its kept plan', false],
  ['without it', true],
])(
  'tables lost while the agent was away, %s: an address that is to be released leaves its device',
  async (_, isLost) => {
    worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
    worlds.gateway.slices = [serving()];
    for (const node of NODES) await settle(node, await open(node));
    expect(await asked('pod')).toEqual(ADDRESSES.first);
    for (const section of sections.splice(0)) await section.stop();
    const remove = 'for family in inet ip ip6 arp; do nft delete table $family unbounded_egress; done';
    for (const node of NODES) {
      bed.network.run(node, 'sh', '-c', remove);
      if (isLost) worlds[node].kept = undefined;
    }
    worlds.worker = { ...worlds.worker, slices: [], pods: [] };
    worlds.gateway.slices = [slice('gateway', { owned: owned('first', true) })];
    for (const node of NODES) expect((await (await open(node)).pass()).report.problems).toEqual([]);
    await expectNothingLeft();
    bed.network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
    for (const family of FAMILIES) {
      const address = addressOf('first', family);
      expect(bed.network.output('partner', 'ping', '-qc1', '-w1', address)).toContain('100% packet loss');
    }
  },
);

const LEFTOVERS: Readonly<Record<string, () => unknown>> = {
  'a rule': () => bed.network.run('gateway', 'ip', 'rule', 'add', 'pref', '999', 'table', '999', 'protocol', '118'),
  'a route': () =>
    bed.network.run('gateway', 'ip', 'route', 'add', 'unreachable', '192.0.2.9', 'table', '999', 'proto', '118'),
  'an address': async () => {
    const { net } = bed.network.nodes.gateway;
    const link = (await net.links.get('eth0'))!.index;
    await net.addresses.create({ link, address: `${ADDRESSES.first[0]}/32`, deprecated: true, protocol });
  },
  'the device': async () => {
    const { net } = bed.network.nodes.gateway;
    const kind = { kind: 'vxlan', vni: 9, port: 9996, local: ADDRESSES.gatewayOverlay[0] } as const;
    await net.links.create({ name: DEVICES.egress, kind, alias: 'unbounded:egress' });
  },
  'a table': () => bed.network.run('gateway', 'nft', 'add', 'table', 'arp', 'unbounded_egress'),
};

test.each(Object.keys(LEFTOVERS))('of all that there was %s alone is left: it goes', async (what) => {
  await LEFTOVERS[what]!();
  expect((await (await open('gateway')).pass()).report).toEqual({ problems: [] });
  await expectNothingLeft();
});
