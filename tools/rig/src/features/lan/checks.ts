import type { Network, NetworkEndpoint } from '@unbounded/crds';
import { type Check, mapLimited, matrixChecks, type Target } from '../../checks/checks.ts';
import { type Ground, streamChecks } from '../../checks/reach-checks.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';

/** Every test pod reaches every other one by the LAN, with packets of its whole MTU; some send a file, whose checksum comes back. */

/** Of the probe, on every address. */
const ECHO_PORT = 9000;
/** The Network of the lab; tests may have others beside it. */
const CHECKED = 'lan';
const FILE_MEBIBYTES = 16;

const objects = async <T>({ layout }: Pick<Ground, 'layout'>, ...what: readonly string[]): Promise<readonly T[]> =>
  (JSON.parse(await kubectl(layout, ['get', ...what, '-o', 'json'])) as { readonly items: readonly T[] }).items;

const none = (what: string, error: string): Check => ({ from: CHECKED, to: CHECKED, what, ok: false, error });

export const lanChecks = async (ground: Pick<Ground, 'layout' | 'pods' | 'inPod'>): Promise<Check[]> => {
  const { pods, inPod } = ground;
  const endpoints = await objects<NetworkEndpoint>(ground, 'networkendpoints', '--all-namespaces');
  const networks = await objects<Network>(ground, 'networks');
  const mtu = networks.find(({ metadata }) => metadata.name === CHECKED)?.status?.mtu;
  if (mtu === undefined) return [none('MTU', 'the Network has none')];
  const addressesOf = new Map(endpoints.map(({ spec }) => [spec.pod, spec.addresses]));
  const targets = pods.flatMap(({ name }): Target[] =>
    (addressesOf.get(name) ?? []).map((address) => ({
      name,
      address,
      port: ECHO_PORT,
      checks: ['icmp', 'udp', 'tcp'],
    })),
  );
  const missing = pods.filter(({ name }) => !addressesOf.has(name));
  const checks = await mapLimited(pods, (pod) =>
    matrixChecks(
      { from: pod.name, rounds: 1 },
      targets.filter((target) => target.name !== pod.name),
      (input) => inPod(pod, ['matrix', String(mtu)], input),
    ),
  );
  const placed = pods.map((pod) => ({ ...pod, ips: addressesOf.get(pod.name) ?? [] }));
  const files = await streamChecks({ ...ground, pods: placed, streamMebibytes: FILE_MEBIBYTES });
  return [
    ...missing.map(({ name }) => none('endpoint', `pod ${name} has none`)),
    ...[...checks.flat(), ...files].map((check) => ({ ...check, what: `lan ${check.what}` })),
  ];
};
