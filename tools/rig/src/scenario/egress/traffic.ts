import type { Target } from '../../checks/checks.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { PARTNER_PORTS } from '../../features/partner/layout.ts';
import { familyOf, hostOf } from '../../layout/addresses.ts';
import { runAsync } from '../../machine/command.ts';
import { commandInPod, inPodNetwork, probeFrom } from '../scenario.ts';

/** What a pod exchanges with the partner: every kind of packet, with the answers. */

const STREAM_MEBIBYTES = 16;
/** Of datagrams that leave in fragments. */
const FRAGMENTED_BYTES = 4000;
const HEADERS = { 4: 28, 6: 48 } as const;

/** Asks the partner which address it sees. @throws CommandError without an answer */
const askPartner = async (pod: Pod, ip: string): Promise<string> =>
  (await probeFrom(pod, ['fetch', `http://${hostOf(ip)}:${PARTNER_PORTS.http}/client`])).trim();

/** The same; undefined without an answer. */
export const seenByPartnerAs = (pod: Pod, ip: string): Promise<string | undefined> =>
  askPartner(pod, ip).catch(() => undefined);

export interface Exchange {
  readonly pathMtu: number;
  /** Which address the partner saw. */
  readonly seenAs: string;
  /** What failed, in words. */
  readonly failures: readonly string[];
}

const ping = (pod: Pod, ip: string, ...options: string[]): Promise<string> =>
  runAsync([...inPodNetwork(pod), 'ping', '-n', '-c2', '-i0.2', '-W2', ...options, ip]);

/** The largest packet that passes, as an ICMP error from the way tells the pod's kernel; its device's MTU where there is none. */
const pathMtu = async (pod: Pod, ip: string): Promise<number> => {
  const [link] = JSON.parse(await runAsync([...inPodNetwork(pod), 'ip', '-j', 'link', 'show', 'eth0'])) as {
    mtu: number;
  }[];
  const device = link!.mtu;
  await ping(pod, ip, '-M', 'do', '-s', String(device - HEADERS[familyOf(ip)])).catch(() => undefined);
  const [route] = JSON.parse(await runAsync([...inPodNetwork(pod), 'ip', '-j', 'route', 'get', ip])) as {
    metrics?: { mtu?: number }[];
  }[];
  return route?.metrics?.find(({ mtu }) => mtu !== undefined)?.mtu ?? device;
};

/** Echoes by all protocols. @param size of the largest packet or datagram */
const echoes = async (pod: Pod, target: Omit<Target, 'name'>, size: number): Promise<string[]> => {
  const input = JSON.stringify([{ name: `${size} bytes`, ...target }]);
  const printed = await runAsync(commandInPod(pod, ['matrix', String(size)]), { input });
  const results = JSON.parse(printed) as { name: string; check: string; ok: boolean; error?: string }[];
  return results.flatMap(({ name, check, ok, error }) => (ok ? [] : [`${check} ${name}: ${error}`]));
};

const failureOf = (what: string, work: Promise<unknown>): Promise<string[]> =>
  work.then(
    () => [],
    (error: Error) => [`${what}: ${error.message}`],
  );

/** TCP, UDP and ICMP, small, as large as the path takes and in fragments, and a stream with its checksum. */
export const exchange = async (pod: Pod, address: string): Promise<Exchange> => {
  const mtu = await pathMtu(pod, address);
  const host = hostOf(address);
  const target = { address, port: PARTNER_PORTS.echo };
  const failures = [
    ...(await echoes(pod, { ...target, checks: ['icmp', 'udp', 'tcp'] }, mtu)),
    ...(await echoes(pod, { ...target, checks: ['udp'] }, FRAGMENTED_BYTES)),
    ...(await failureOf('ping in fragments', ping(pod, address, '-s', String(FRAGMENTED_BYTES)))),
    ...(await failureOf(
      `${STREAM_MEBIBYTES} MiB`,
      probeFrom(pod, ['stream', `${host}:${PARTNER_PORTS.sink}`, String(STREAM_MEBIBYTES)]),
    )),
  ];
  const seenAs = await askPartner(pod, address).catch((error: Error) => error.message.trim());
  return { pathMtu: mtu, seenAs, failures };
};
