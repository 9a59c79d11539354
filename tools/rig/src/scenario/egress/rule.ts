import { join } from 'node:path';
import type { StaticEgressIP } from '@unbounded/crds';
import type { Pod } from '../../checks/test-pod.ts';
import { admittedBlocks } from '../../features/partner/layout.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { checkout } from '../../machine/paths.ts';
import { down } from '../../substrate/down.ts';
import { probePods } from '../../substrate/probes.ts';
import { up } from '../../substrate/up.ts';
import { timeUntil } from '../scenario.ts';

/** The rule of docs/examples, which selects one of the two test pods on every node. */

export const RULE = {
  file: join(checkout, 'docs/examples/static-egress.yaml'),
  name: 'partner',
  pods: 'probe-a',
} as const;
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

/** The controller says that it is enforced, and its owner that it has the addresses. */
export const isRuleReady = async (layout: LabLayout): Promise<boolean> => isReady(await readRule(layout));

/** Nodes that own its addresses. */
export const ownersOfRule = async (layout: LabLayout): Promise<string[]> => {
  const assigned = (await readRule(layout)).status?.addresses ?? [];
  return [...new Set(assigned.flatMap(({ node }) => (node === undefined ? [] : [node])))];
};

/** A fresh lab in which the rule is in force. */
export const upWithRule = async (layout: LabLayout): Promise<Selected> => {
  await down();
  await up(layout);
  return applyRule(layout);
};

/** Applies the rule and waits until the controller says that it is enforced: its owner has the addresses. */
export const applyRule = async (layout: LabLayout): Promise<Selected> => {
  await kubectl(layout, ['apply', '-f', RULE.file]);
  await timeUntil('the rule is ready', () => isRuleReady(layout), READY_MS);
  const assigned = (await readRule(layout)).status?.addresses ?? [];
  const owners = [...new Set(assigned.map(({ node }) => node))];
  if (owners.length !== 1 || owners[0] === undefined || assigned.length !== admittedBlocks(layout).length)
    throw new Error(`the rule must have an address of each family at one owner: ${JSON.stringify(assigned)}`);
  const [owner] = owners;
  const addresses = assigned.map(({ address }) => address);
  const pods = (await probePods(layout)).filter(({ name }) => name.startsWith(`${RULE.pods}-`));
  return { addresses, owner, pods };
};
