import { hostOf, PLANS } from '../../layout/addresses.ts';
import { attempt, type Check, mapLimited, type Target } from '../../checks/checks.ts';
import type { ConditionsSeen } from './conditions.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { NODE_PORT } from './manifests.ts';
import { isWanAddress, worldUrls } from '../../checks/outside.ts';
import { inNodeNetwork } from '../../checks/probe.ts';
import type { Ground } from '../../checks/reach-checks.ts';

/** Checks of what only a cluster has: Services, DNS, kubectl, conditions. */

export const apiTarget = (layout: LabLayout): Target => {
  const address = PLANS[layout.families[0]!].services.apiServer;
  return { name: 'service/kubernetes', address, port: 443, checks: ['connect'] };
};

/** Name resolution, Services and the outside world, from every pod. */
export const serviceChecks = async ({ layout, pods, inPod }: Ground): Promise<Check[]> => {
  const clusterIps = JSON.parse(
    await kubectl(layout, ['get', 'service', 'probe', '-o', 'jsonpath={.spec.clusterIPs}']),
  ) as string[];
  const fetched = (
    ends: { from: string; to: string; url: string },
    judge: (body: string) => string | undefined,
    run: (args: string[]) => Promise<string>,
  ) => attempt({ from: ends.from, to: ends.to, what: 'http' }, async () => judge(await run(['fetch', ends.url])));
  const named = (body: string): string | undefined =>
    pods.some(({ name }) => name === body.trim()) ? undefined : `answered by ${body}`;
  const perPod = await mapLimited(pods, async (pod) => {
    const run = (args: string[]): Promise<string> => inPod(pod, args);
    const checks: Check[] = [];
    for (const ip of clusterIps)
      checks.push(await fetched({ from: pod.name, to: 'service/probe', url: `http://${hostOf(ip)}/` }, named, run));
    checks.push(
      await attempt({ from: pod.name, to: 'dns', what: 'resolve' }, async () => {
        const answer = await run(['resolve', 'probe.default.svc.cluster.local']);
        return clusterIps.every((ip) => answer.includes(ip)) ? undefined : `resolved to ${answer}`;
      }),
    );
    for (const url of worldUrls(layout))
      checks.push(
        await fetched(
          { from: pod.name, to: 'outside', url },
          (seen) => (isWanAddress(seen) ? undefined : `seen outside as ${seen.trim()}`),
          run,
        ),
      );
    return checks;
  });
  const nodePorts = layout.nodes.flatMap((node) => node.internalIps.map((address) => ({ node, address })));
  const perNode = await mapLimited(nodePorts, ({ node, address }) => {
    const other = layout.nodes.find((candidate) => candidate.site === node.site && candidate !== node) ?? node;
    const run = (args: string[]): Promise<string> => inNodeNetwork(other.name, args);
    const url = `http://${hostOf(address)}:${NODE_PORT}/`;
    return fetched({ from: other.name, to: `${node.name}:${NODE_PORT}`, url }, named, run);
  });
  return [...perPod.flat(), ...perNode];
};

/** kubectl logs and exec in every site: the API server reaches kubelets through the overlay. */
export const kubectlChecks = ({ layout, pods, inPod }: Ground): Promise<Check[]> =>
  mapLimited(layout.sites, async (site) => {
    const pod = pods.find((candidate) => candidate.site === site.name);
    if (!pod) return [{ from: 'kubectl', to: site.name, what: 'logs', ok: false, error: 'the site has no test pod' }];
    return [
      await attempt({ from: 'kubectl', to: pod.name, what: 'logs' }, async () => {
        await kubectl(layout, ['logs', pod.name, '--tail=1']);
        return undefined;
      }),
      await attempt({ from: 'kubectl', to: pod.name, what: 'exec' }, async () => {
        const answer = await inPod(pod, ['fetch', `http://${layout.families[0] === 4 ? '127.0.0.1' : '[::1]'}:8080/`]);
        return answer.trim() === pod.name ? undefined : `answered by ${answer}`;
      }),
    ];
  }).then((lists) => lists.flat());

/** Sites, pools, peerings and nodes: one check for all that is well, and one for each statement that something is not. */
export const conditionChecks = ({ objects, bad }: ConditionsSeen): Check[] => [
  { from: 'kubernetes', to: 'conditions', what: `of ${objects} objects`, ok: true },
  ...bad.map((error) => ({ from: 'kubernetes', to: 'conditions', what: 'condition', ok: false, error })),
];
