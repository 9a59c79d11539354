import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import { silentLogger as logger } from '@unbounded/telemetry';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EGRESS_CHAINS } from '../kernel/base-chains.ts';
import { createSectionTable, type SectionTable } from '../kernel/section-table.ts';
import { createFence } from './fence.ts';
import { addressesInUse } from './grants.ts';
import { ALWAYS } from './ownership.ts';
import { MAX_LIVE, planArpFence, planFence } from './plan/tables.plan.ts';

/** Very many addresses in the sets of the kernel. */

let ns: Netns;
let nft: Nftables;
const tables = new Map<string, SectionTable>();
const baseChains = Object.values(EGRESS_CHAINS);
beforeAll(async () => {
  ns = createNetns();
  nft = createNftables({ netnsFd: ns.fd });
  for (const family of ['ip', 'ip6', 'arp'] as const)
    tables.set(family, createSectionTable({ nft, section: 'egress', family, baseChains, logger }));
  await tables.get('arp')!.replace(planArpFence({ addresses: [] }));
  for (const family of ['ip', 'ip6'] as const) await tables.get(family)!.replace(planFence(family));
});
afterAll(() => {
  nft.close();
  ns.close();
});

const many = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `2001:db8::${(index + 1).toString(16)}`);

test('as many as a node can have are renewed; of those beyond none silences another', async () => {
  const fence = createFence({ table: (family) => tables.get(family)!, ownership: ALWAYS, logger });
  const few = ['192.0.2.1', '192.0.2.2'];
  expect(await fence.hold(new Set([...many(MAX_LIVE), ...few]), performance.now())).toEqual(new Map());
  expect((await addressesInUse(nft)).size).toBe(MAX_LIVE + few.length);
  expect(await fence.hold(new Set([...many(MAX_LIVE), ...few]), performance.now())).toEqual(new Map()); // once more, into full sets
  const refused = await fence.hold(new Set([...many(MAX_LIVE + 10), ...few]), performance.now());
  expect([...refused.keys()]).toEqual(many(MAX_LIVE + 10).slice(MAX_LIVE));
  expect([...refused.values()][0]).toMatchObject({ code: 'ENFILE' });
  expect((await addressesInUse(nft)).size).toBe(MAX_LIVE + few.length);
  expect(fence.mayUse(few[0]!)).toBe(true);
  expect(fence.mayUse(many(MAX_LIVE + 1).at(-1)!)).toBe(false);
  await fence.release(many(MAX_LIVE + 10));
  expect(await addressesInUse(nft)).toEqual(new Set(few));
  fence.stop();
});

test('without the table of ARP, which a kernel need not have, addresses are renewed all the same', async () => {
  await nft.deleteTable('arp', 'unbounded_egress');
  const fence = createFence({ table: (family) => tables.get(family)!, ownership: ALWAYS, logger });
  expect(await fence.hold(new Set(['192.0.2.9', '2001:db8::9']), performance.now())).toEqual(new Map());
  const inUse = await addressesInUse(nft);
  for (const address of ['192.0.2.9', '2001:db8::9']) expect(inUse).toContain(address);
  fence.stop();
});
