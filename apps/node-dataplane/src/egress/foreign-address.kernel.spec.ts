import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ADDRESSES, addressOf, FAMILIES, PORT } from './egress-network.testdata.ts';
import { NONE, openSectionBed, pod, serving, steered } from './section-bed.testdata.ts';

/** An egress address that the node has by another one's doing: a virtual address of the API server, a second NIC. */

const bed = openSectionBed();
const { worlds, sections, open, settle, asked } = bed;

let server: TcpServer;
beforeAll(async () => {
  server = await serveTcp(['nsenter', `--net=${bed.network.ns.gateway.path}`], PORT);
});
afterAll(() => server.end());
afterEach(() => {
  bed.network.output('gateway', 'ip', 'link', 'del', 'vip');
  bed.network.output('partner', 'ip', 'route', 'del', ADDRESSES.first[1]);
  change('del', 'eth0');
});

const change = (verb: 'add' | 'del', device: string, lengths: readonly number[] = [32, 128]): void =>
  ADDRESSES.first.forEach((address, index) => {
    const more = verb === 'add' && index === 1 ? ['nodad'] : [];
    bed.network.output('gateway', 'ip', 'addr', verb, `${address}/${lengths[index]}`, 'dev', device, ...more);
  });
/** A device beside the LAN; no neighbor discovery is answered for what it has. */
const addDevice = (): void => {
  bed.network.run('gateway', 'ip', 'link', 'add', 'vip', 'up', 'type', 'bridge');
  bed.network.run('partner', 'ip', 'route', 'add', ADDRESSES.first[1], 'via', ADDRESSES.gateway[1]);
};
/** Of the foreign use: who asks the address is answered by the node, whatever its neighbors remember. */
const reached = (timeoutSeconds?: number): Promise<string[]> => {
  bed.network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan');
  return Promise.all(FAMILIES.map((family) => bed.network.ask('partner', addressOf('first', family), timeoutSeconds)));
};
/** Where nobody is to answer: it takes the whole time. */
const SHORT_SECONDS = 0.3;
const inUse = (device: string) =>
  ADDRESSES.first.map((address) => ({
    reason: 'EgressAddressInUse',
    message: expect.stringContaining(`${address}: device ${device} of this node has it`),
  }));

test.each([
  ['eth0', [32, 128]],
  ['eth0', [24, 64]],
  ['vip', [32, 128]],
] as const)('one on %s with lengths %j is left as it is, and taken when it is free', async (device, lengths) => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  if (device === 'vip') addDevice();
  change('add', device, lengths);
  expect(await reached()).toEqual(ADDRESSES.partner);
  await (await open('worker')).pass();
  const gateway = await open('gateway');
  const { report } = await gateway.pass();
  expect(report.problems).toEqual(inUse(device));
  expect(report.conditions).toMatchObject([{ status: 'False', reason: 'EgressAddressInUse' }]);
  expect(await reached()).toEqual(ADDRESSES.partner);
  bed.network.sources('gateway');
  expect(await asked('pod', SHORT_SECONDS)).toEqual(NONE);
  expect(bed.network.sources('gateway')).toEqual([]);
  change('del', device, lengths);
  expect((await settle('gateway', gateway)).report.problems).toEqual([]);
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  expect(await reached(SHORT_SECONDS)).toEqual(NONE);
});

test('one that comes while the address is in use here wins, also while the objects are away', async () => {
  worlds.worker = { ...worlds.worker, slices: [steered('gateway')], pods: [pod('pod')] };
  worlds.gateway.slices = [serving()];
  await (await open('worker')).pass();
  await settle('gateway', await open('gateway'));
  expect(await asked('pod')).toEqual(ADDRESSES.first);
  addDevice();
  change('add', 'vip');
  worlds.gateway.slices = undefined;
  const gateway = sections.at(-1)!;
  expect((await gateway.pass()).report.problems).toEqual(inUse('vip'));
  expect(await reached()).toEqual(ADDRESSES.partner);
  expect(await asked('pod', SHORT_SECONDS)).toEqual(NONE);
});

test('one that is deprecated, as keepalived makes its own, is not taken for ours', async () => {
  worlds.gateway.slices = [serving()];
  for (const [index, address] of ADDRESSES.first.entries())
    bed.network.run(
      'gateway',
      'ip',
      'addr',
      'add',
      `${address}/${[32, 128][index]}`,
      'dev',
      'eth0',
      'preferred_lft',
      '0',
    );
  const gateway = await open('gateway');
  expect((await gateway.pass()).report.problems).toEqual(inUse('eth0'));
  worlds.gateway.slices = [];
  await gateway.pass();
  const shown = bed.network.run('gateway', 'ip', '-br', 'addr', 'show', 'eth0');
  for (const address of ADDRESSES.first) expect(shown).toContain(address);
});
