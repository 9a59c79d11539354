import { familyOf, hostOf } from './addresses.ts';
import { attempt, type Check, mapLimited } from './checks.ts';
import { isWanAddress } from './cluster-checks.ts';
import { kernelProtocols } from './fabric-up.ts';
import type { LabLayout } from './layout.ts';
import { type PlanLinks, readPlans } from './links.ts';
import { worldUrls } from './manifests.ts';
import { inPod, type Pod } from './probes.ts';
import type { Ground } from './reach-checks.ts';

/** Checks of a lab without Kubernetes: sources, the outside world, and what the agents say of their plans. */

const HTTP_PORT = 8080;

interface Fetch {
  readonly from: Pod;
  readonly to: string;
  readonly what: string;
  readonly url: string;
  readonly judge: (seen: string) => string | undefined;
}

/** One pod of every other node is asked which address it sees: that of the pod, or somebody translated it. */
const sourceFetches = ({ pods }: Ground, from: Pod): Fetch[] => {
  const others = pods.filter(
    (pod, index) => pod.node !== from.node && pods.findIndex(({ node }) => node === pod.node) === index,
  );
  return others.flatMap((to) =>
    to.ips.map((ip) => ({
      from,
      to: to.name,
      what: 'source kept',
      url: `http://${hostOf(ip)}:${HTTP_PORT}/client`,
      judge: (seen) => (from.ips.includes(seen.trim()) ? undefined : `seen as ${seen.trim()}`),
    })),
  );
};

/** The world has addresses of the underlay's families: pods of another family alone do not reach it. */
const worldFetches = ({ layout }: Ground, from: Pod): Fetch[] =>
  worldUrls(layout)
    .filter((url) => layout.families.includes(familyOf(new URL(url).hostname)))
    .map((url) => ({
      from,
      to: 'outside',
      what: 'http',
      url,
      judge: (seen) => (isWanAddress(seen) ? undefined : `seen outside as ${seen.trim()}`),
    }));

export const sourceChecks = (ground: Ground): Promise<Check[]> =>
  mapLimited(
    ground.pods.flatMap((pod) => [...sourceFetches(ground, pod), ...worldFetches(ground, pod)]),
    ({ from, to, what, url, judge }) =>
      attempt({ from: from.name, to, what }, async () => judge(await inPod(ground.layout, from, ['fetch', url]))),
  );

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

/** Problems in the agents' plans, as conditions would tell them. */
export const planChecks = async (layout: LabLayout): Promise<Check[]> => {
  const able = kernelProtocols();
  const plans: readonly PlanLinks[] = await readPlans(layout);
  return plans.flatMap(({ node, problems }) => [
    { from: node, to: 'plan', what: 'without problems', ok: true },
    ...problems
      .filter(({ reason }) => !isExpected(layout, able, reason))
      .map(({ reason, message }) => ({ from: node, to: 'plan', what: reason, ok: false, error: message })),
  ]);
};
