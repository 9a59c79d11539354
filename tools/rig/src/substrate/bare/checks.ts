import { familyOf, hostOf } from '../../layout/addresses.ts';
import { attempt, type Check, mapLimited } from '../../checks/checks.ts';
import { runAsync } from '../../machine/command.ts';
import { podCommand } from './pods.ts';
import { kernelProtocols } from '../../machine/kernel.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { readPlans } from '../../checks/links.ts';
import { binary } from '../../machine/paths.ts';
import type { Pod } from '../../checks/test-pod.ts';
import type { Ground } from '../../checks/reach-checks.ts';
import { isWanAddress, worldUrls } from '../../checks/outside.ts';

/** Checks of a lab without Kubernetes: sources, the outside world, and what the agents say of their plans. */

const HTTP_PORT = 8080;

interface Fetch {
  readonly to: string;
  readonly what: string;
  readonly url: string;
  /** What is wrong with the address that was seen. */
  readonly judge: (seen: string) => string | undefined;
}

/** One of each node: what differs from path to path differs by node. */
const firstPods = (pods: readonly Pod[]): Pod[] =>
  pods.filter(({ node }, index) => pods.findIndex((pod) => pod.node === node) === index);

/** A pod of every other node is asked which address it sees: that of the pod, or somebody translated it. */
const sourceFetches = ({ pods }: Ground, from: Pod): Fetch[] =>
  firstPods(pods)
    .filter(({ node }) => node !== from.node)
    .flatMap(({ name, ips }) =>
      ips.map((ip) => ({
        to: name,
        what: 'source kept',
        url: `http://${hostOf(ip)}:${HTTP_PORT}/client`,
        judge: (seen) => (from.ips.includes(seen) ? undefined : `seen as ${seen}`),
      })),
    );

/** The world has addresses of the underlay's families: pods of another family alone do not reach it. */
const worldFetches = ({ layout }: Ground): Fetch[] =>
  worldUrls(layout)
    .filter((url) => layout.families.includes(familyOf(new URL(url).hostname)))
    .map((url) => ({
      to: 'outside',
      what: 'http',
      url,
      judge: (seen) => (isWanAddress(seen) ? undefined : `seen outside as ${seen}`),
    }));

/** Fetches in one go, a line for each: on an emulated machine a process costs more than what it fetches. */
const FETCH_ALL = 'program=$1; shift; for url; do "$program" fetch "$url" || echo nobody; done';

export const sourceChecks = (ground: Ground): Promise<Check[]> =>
  mapLimited(firstPods(ground.pods), async (from): Promise<Check[]> => {
    const fetches = [...sourceFetches(ground, from), ...worldFetches(ground)];
    const urls = fetches.map(({ url }) => url);
    const printed = await runAsync(podCommand(from, ['sh', '-c', FETCH_ALL, 'sh', binary('probe'), ...urls]));
    const lines = printed.split('\n');
    return Promise.all(
      fetches.map(({ to, what, judge }, index) =>
        attempt({ from: from.name, to, what }, async () => judge(lines[index]?.trim() ?? 'nobody')),
      ),
    );
  }).then((lists) => lists.flat());

/** What the options themselves bring about. */
const isExpected = ({ options }: LabLayout, able: readonly string[], reason: string): boolean => {
  const wished = [options.protocol, options.between];
  if (reason === 'CleartextOverExternal') return options.between !== 'Auto' && options.between !== 'WireGuard';
  if (reason !== 'ProtocolUnsupported') return false;
  const carriesIpv4Only = options.ip !== 'ipv4' || !['same', 'ipv4'].includes(options.underlay);
  return wished.some((protocol) =>
    protocol === 'IPIP' && carriesIpv4Only ? true : !['Auto', 'None'].includes(protocol) && !able.includes(protocol),
  );
};

const NO_PLAN = { reason: 'PlanMissing', message: 'the agent has kept no plan' };

/** Problems in the agents' plans, as conditions would tell them. */
export const planChecks = (layout: LabLayout): Check[] => {
  const able = kernelProtocols();
  const plans = new Map(readPlans(layout).map((plan) => [plan.node, plan]));
  return layout.nodes.flatMap(({ name: node }) => {
    const problems = plans.get(node)?.problems ?? [NO_PLAN];
    return [
      { from: node, to: 'plan', what: 'without problems', ok: true },
      ...problems
        .filter(({ reason }) => !isExpected(layout, able, reason))
        .map(({ reason, message }) => ({ from: node, to: 'plan', what: reason, ok: false, error: message })),
    ];
  });
};
