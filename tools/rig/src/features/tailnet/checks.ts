import type { TailnetDevice } from '@unbounded/crds';
import { attempt, type Check, mapLimited, matrixChecks, type Target, timed } from '../../checks/checks.ts';
import type { Ground } from '../../checks/reach-checks.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { hostOf } from '../../layout/addresses.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { runAsync } from '../../machine/command.ts';
import { binary } from '../../machine/paths.ts';
import { asLaptopUser, LAPTOP, laptopAddresses } from './laptop.ts';

/** The laptop and all pods reach each other by their addresses in the tailnet. */

/** Of a tailnet, bytes. */
const MTU = 1280;
const [ECHO_PORT, SINK_PORT] = [9000, 9001];

const devicesOf = async (layout: LabLayout): Promise<readonly TailnetDevice[]> =>
  (
    JSON.parse(await kubectl(layout, ['get', 'tailnetdevices', '-n', 'default', '-o', 'json'])) as {
      readonly items: readonly TailnetDevice[];
    }
  ).items;

const targetsOf = (name: string, addresses: readonly string[]): Target[] =>
  addresses.map((address) => ({ name, address, port: ECHO_PORT, checks: ['icmp', 'udp', 'tcp'] }));

const onLaptop = (args: readonly string[], input?: string): Promise<string> =>
  runAsync([...asLaptopUser(), binary('probe'), ...args], input === undefined ? {} : { input });

const recordChecks = (pods: readonly Pod[], devices: ReadonlyMap<string, TailnetDevice>): Check[] =>
  pods.map(({ name }) => {
    const { state, addresses = [], message } = devices.get(name)?.status ?? {};
    const ok = state === 'Running' && addresses.length > 0;
    return { from: name, to: 'tailnet', what: 'device', ok, ...(ok ? {} : { error: message ?? state ?? 'no record' }) };
  });

/** One pod of each site. */
const perSite = (pods: readonly Pod[]): Pod[] => [...new Map(pods.map((pod) => [pod.site, pod])).values()];

const streamTo = (ground: Ground, pod: Pod, address: string): Promise<Check> =>
  attempt({ from: LAPTOP, to: pod.name, what: `stream of ${ground.streamMebibytes} MiB` }, async () => {
    await onLaptop(['stream', `${hostOf(address)}:${SINK_PORT}`, String(ground.streamMebibytes)]);
    return undefined;
  });

const streamFrom = (ground: Ground, pod: Pod, address: string): Promise<Check> =>
  attempt({ from: pod.name, to: LAPTOP, what: `stream of ${ground.streamMebibytes} MiB` }, async () => {
    await ground.inPod(pod, ['stream', `${hostOf(address)}:${SINK_PORT}`, String(ground.streamMebibytes)]);
    return undefined;
  });

export const tailnetChecks = async (ground: Ground): Promise<Check[]> => {
  const { layout, pods, inPod } = ground;
  const laptop = await laptopAddresses();
  const devices = new Map((await devicesOf(layout)).map((device) => [device.spec.pod, device]));
  const addressesOf = ({ name }: Pod): readonly string[] => devices.get(name)?.status?.addresses ?? [];
  const others = (pod: Pod): Target[] =>
    pods.filter((other) => other !== pod).flatMap((other) => targetsOf(other.name, addressesOf(other)));
  const rounds = 1;
  return [
    ...recordChecks(pods, devices),
    ...(await timed('laptop to devices, and they to it and each other', async () => [
      ...(await matrixChecks(
        { from: LAPTOP, rounds },
        pods.flatMap((pod) => targetsOf(pod.name, addressesOf(pod))),
        (input) => onLaptop(['matrix', String(MTU)], input),
      )),
      ...(
        await mapLimited(pods, (pod) =>
          matrixChecks({ from: pod.name, rounds }, [...targetsOf(LAPTOP, laptop), ...others(pod)], (input) =>
            inPod(pod, ['matrix', String(MTU)], input),
          ),
        )
      ).flat(),
    ])),
    ...(await mapLimited(perSite(pods), (pod) => streamTo(ground, pod, addressesOf(pod)[0] ?? ''))),
    ...(await mapLimited(perSite(pods), (pod) => streamFrom(ground, pod, laptop[0]!))),
  ];
};
