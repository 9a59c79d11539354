import { join } from 'node:path';
import type { EgressNodeSlice, StaticEgressIP } from '@unbounded/crds';
import type { Pod } from '../../checks/test-pod.ts';
import { admittedBlocks } from '../../features/partner/layout.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { checkout } from '../../machine/paths.ts';
import { probePods } from '../../substrate/probes.ts';
import { timeUntil } from '../scenario.ts';

/** The rule of docs/examples, which selects one of the two test pods on every node. */

const RULE = { file: join(checkout, 'docs/examples/static-egress.yaml'), name: 'partner', pods: 'probe-a' } as const;
const READY_MS = 60_000;

export interface Selected {
  /** One of each family. */
  readonly addresses: readonly string[];
  readonly owner: string;
  /** On every node one. */
  readonly pods: readonly Pod[];
}

const readRule = async (layout: LabLayout): Promise<StaticEgressIP> =>
  JSON.parse(await kubectl(layout, ['get', 'staticegressip', RULE.name, '-o', 'json'])) as StaticEgressIP;

const isReady = ({ status }: StaticEgressIP): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false;

/** The owner has asked on the LAN whether the addresses are free, and has taken them. */
const areHeld = async (layout: LabLayout, owner: string, addresses: readonly string[]): Promise<boolean> => {
  const text = await kubectl(layout, ['get', 'egressnodeslices', '-o', 'json']);
  const { items } = JSON.parse(text) as { readonly items: readonly EgressNodeSlice[] };
  const own = items.filter(({ spec }) => spec.nodeName === owner);
  const held = new Set(own.flatMap(({ status }) => (status?.held ?? []).map(({ address }) => address)));
  return addresses.every((address) => held.has(address));
};

/** Applies the rule and waits until the controller says that it is enforced, and the owner that it has the addresses. */
export const applyRule = async (layout: LabLayout): Promise<Selected> => {
  await kubectl(layout, ['apply', '-f', RULE.file]);
  await timeUntil('the rule is ready', async () => isReady(await readRule(layout)), READY_MS);
  const assigned = (await readRule(layout)).status?.addresses ?? [];
  const owners = [...new Set(assigned.map(({ node }) => node))];
  if (owners.length !== 1 || owners[0] === undefined || assigned.length !== admittedBlocks(layout).length)
    throw new Error(`the rule must have an address of each family at one owner: ${JSON.stringify(assigned)}`);
  const [owner] = owners;
  const addresses = assigned.map(({ address }) => address);
  await timeUntil('the owner has the addresses', () => areHeld(layout, owner, addresses), READY_MS);
  const pods = (await probePods(layout)).filter(({ name }) => name.startsWith(`${RULE.pods}-`));
  return { addresses, owner, pods };
};
