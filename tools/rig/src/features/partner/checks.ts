import { familyOf, hostOf } from '../../layout/addresses.ts';
import type { Check } from '../../checks/checks.ts';
import type { Ground } from '../../checks/reach-checks.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { newSince, type Seen } from './firewall.ts';
import { PARTNER, PARTNER_PORTS, partnerIps } from './layout.ts';

/** What the partner has to see: selected pods with their egress address, and nobody else let in. */

/** The address by which a pod leaves to a destination, by the routes that its node was given; undefined: as its node does. */
type EgressOf = (pod: Pod, destination: string) => string | undefined;

/** Of every pod the first route that holds the partner counts; the lab's pods have no exceptions for it. */
const readEgress = async ({ egressSlices }: Ground): Promise<EgressOf> => {
  const slices = await egressSlices();
  return (pod, destination) => {
    for (const { spec } of slices) {
      const found = spec.pods?.find(({ name, namespace }) => name === pod.name && namespace === 'default');
      const routes = found?.routes.map((number) => spec.routes?.[number]) ?? [];
      for (const route of routes) {
        const egress = route?.egress?.find(({ address }) => familyOf(address) === familyOf(destination));
        if (egress) return egress.address;
      }
    }
    return undefined;
  };
};

const NOBODY = 'no answer';

const ask = async ({ inPod }: Ground, pod: Pod, ip: string): Promise<string> => {
  try {
    return (await inPod(pod, ['fetch', `http://${hostOf(ip)}:${PARTNER_PORTS.http}/client`])).trim();
  } catch {
    return NOBODY;
  }
};

const askedOf = (ground: Ground, egressOf: EgressOf): Promise<Check[]> =>
  Promise.all(
    ground.pods.flatMap((pod) =>
      partnerIps(ground.layout)
        .filter((ip) => pod.ips.some((own) => familyOf(own) === familyOf(ip)))
        .map(async (ip): Promise<Check> => {
          const wanted = egressOf(pod, ip) ?? NOBODY;
          const seen = await ask(ground, pod, ip);
          const what = wanted === NOBODY ? 'refused' : `seen as ${wanted}`;
          return { from: pod.name, to: PARTNER, what, ok: seen === wanted, error: `seen as ${seen}` };
        }),
    ),
  );

const sourcesCheck = (what: string, sources: readonly string[], isFine: (source: string) => boolean): Check => {
  const wrong = sources.filter((source) => !isFine(source));
  return { from: PARTNER, to: 'sources', what, ok: wrong.length === 0, error: `there was ${wrong.join(', ')}` };
};

/** Without a rule nobody is admitted. */
export const partnerChecks = async (ground: Ground, look: () => readonly Seen[]): Promise<Check[]> => {
  const egressOf = await readEgress(ground);
  const before = look();
  const asked = await askedOf(ground, egressOf);
  const seen = newSince(before, look());
  const of = (verdict: Seen['verdict']): string[] =>
    seen.filter((one) => one.verdict === verdict).map(({ source }) => source);
  const expected = new Set(partnerIps(ground.layout).flatMap((ip) => ground.pods.map((pod) => egressOf(pod, ip))));
  const ofPods = new Set(ground.pods.flatMap(({ ips }) => ips));
  return [
    ...asked,
    sourcesCheck('admitted: egress addresses alone', of('admitted'), (source) => expected.has(source)),
    sourcesCheck('refused: no address of a pod', of('refused'), (source) => !ofPods.has(source)),
  ];
};
