import type { Answer } from './answer.codec.ts';
import { type CniResult, extendResult, resultOfVersion } from './cni-result.ts';
import { POD_ANNOTATIONS } from './config.ts';
import type { Annotations } from './hook.port.ts';
import type { PlanGate } from './plan-gate.ts';
import { HookError, type PodNetwork } from './pod-network.ts';
import type { JoinedNetwork, PodAttachment } from './pods.ts';
import type { CniRequest } from './request.codec.ts';

/** The commands of the CNI specification (1.1.0): pods are let in once a plan is applied, attached on ADD, and detached on DEL and GC. */

/** Error codes of the specification (section "Error"). */
const INVALID_CONFIG = 7;
const INVALID_ENVIRONMENT = 4;
const TRY_AGAIN_LATER = 11;
/** Of STATUS (1.1.0). */
const NOT_AVAILABLE = 50;
/** From 100 on they are a plugin's own. */
const NOT_AS_ATTACHED = 100;
const NOT_ALL_DETACHED = 101;

const VALID_ATTACHMENTS = 'cni.dev/valid-attachments';

interface CniConfig {
  readonly cniVersion?: string;
  readonly name?: string;
  /** A Network: the plugin makes the interface, and needs no other before it. */
  readonly network?: unknown;
  readonly segment?: unknown;
  readonly runtimeConfig?: { readonly mac?: unknown; readonly ips?: unknown; readonly [POD_ANNOTATIONS]?: unknown };
  readonly prevResult?: CniResult;
  readonly [VALID_ATTACHMENTS]?: unknown;
}

const SUCCESS: Answer = { exitCode: 0, output: '' };
const failure = (cniVersion: string, code: number, message: string): Answer => ({
  exitCode: 1,
  output: `${JSON.stringify({ cniVersion, code, msg: message })}\n`,
});

/** `K8S_POD_NAME=web;K8S_POD_NAMESPACE=default` */
const argumentsOf = (text: string): Map<string, string> =>
  new Map(text.split(';').map((pair) => [pair.split('=')[0] ?? '', pair.slice(pair.indexOf('=') + 1)]));

const isHostEnd = (veth: { readonly name?: string; readonly sandbox?: string }): boolean =>
  !veth.sandbox && (veth.name?.startsWith('veth') ?? false);

const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

/** As the plugin wrote it that made the interface: before anything ran in the pod. */
const macOf = (config: CniConfig, interfaceName: string): string | undefined => {
  const inside = config.prevResult?.interfaces?.find(({ name, sandbox }) => sandbox && name === interfaceName);
  const mac = inside?.mac?.toLowerCase();
  return mac !== undefined && MAC.test(mac) ? mac : undefined;
};

const joinedNetwork = ({ name = '', network, segment, runtimeConfig }: CniConfig): JoinedNetwork => {
  const { mac, ips } = runtimeConfig ?? {};
  return {
    ...{ configuration: name, network },
    ...(segment === undefined ? {} : { segment }),
    ...(mac === undefined ? {} : { mac }),
    ...(ips === undefined ? {} : { ips }),
  };
};

/** Undefined: the runtime passes none, or what is no map of texts. */
const annotationsOf = ({ runtimeConfig }: CniConfig): Annotations | undefined => {
  const passed = runtimeConfig?.[POD_ANNOTATIONS];
  if (typeof passed !== 'object' || passed === null || Array.isArray(passed)) return undefined;
  return Object.values(passed).every((value) => typeof value === 'string') ? (passed as Annotations) : undefined;
};

const attachmentOf = ({ environment }: CniRequest, config: CniConfig): PodAttachment => {
  const pod = argumentsOf(environment['CNI_ARGS'] ?? '');
  return {
    namespace: pod.get('K8S_POD_NAMESPACE') ?? '',
    name: pod.get('K8S_POD_NAME') ?? '',
    uid: pod.get('K8S_POD_UID') ?? '',
    containerId: environment['CNI_CONTAINERID'] ?? '',
    netns: environment['CNI_NETNS'] ?? '',
    interface: environment['CNI_IFNAME'] ?? '',
    hostVeth: config.prevResult?.interfaces?.find(isHostEnd)?.name,
    mac: macOf(config, environment['CNI_IFNAME'] ?? ''),
    addresses: (config.prevResult?.ips ?? []).flatMap(({ address }) => address ?? []),
    ...(config.network === undefined ? {} : { joins: joinedNetwork(config) }),
  };
};

const parseConfig = (json: string): CniConfig => {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null) throw new TypeError(`it is ${JSON.stringify(value)}`);
  return value;
};

const NO_PLAN_YET =
  "the node's network is not set up yet: no plan has been applied since it booted (see the log and the Node's condition UnboundedNetworkDegraded)";

/** A request, and what it is about. */
interface Parsed extends CniRequest {
  readonly cni: CniConfig;
  readonly version: string;
}

export interface Commands {
  readonly pods: PodNetwork;
  /** Until it is open no pod is let in. */
  readonly gate: Pick<PlanGate, 'isOpen'>;
}

const add = async (request: Parsed, { pods, gate }: Commands): Promise<Answer> => {
  const { cni, version } = request;
  if (!gate.isOpen) return failure(version, TRY_AGAIN_LATER, NO_PLAN_YET);
  if (!cni.prevResult && cni.network === undefined)
    return failure(
      version,
      INVALID_CONFIG,
      'prevResult is missing: this plugin stands after bridge in the list, or names a Network in "network"',
    );
  try {
    const additions = await pods.attach(attachmentOf(request, cni), annotationsOf(cni));
    const extended = extendResult(cni.prevResult ?? {}, additions);
    const result = { cniVersion: version, ...resultOfVersion(extended, version) };
    const settle = additions.flatMap((addition) => addition.settle ?? []);
    return { exitCode: 0, output: `${JSON.stringify(result)}\n`, ...(settle.length > 0 && { settle }) };
  } catch (error) {
    const { message: cause } = error as Error;
    const message =
      error instanceof HookError ? cause : `the pod cannot be kept to its own MAC and addresses: ${cause}`;
    return failure(version, TRY_AGAIN_LATER, message);
  }
};

const status = ({ version }: Parsed, { pods, gate }: Commands): Answer => {
  const reason = gate.isOpen ? pods.status() : NO_PLAN_YET;
  return reason === undefined ? SUCCESS : failure(version, NOT_AVAILABLE, reason);
};

const check = async ({ version }: Parsed, pods: PodNetwork, [container, name]: [string, string]): Promise<Answer> => {
  const wrong = await pods.check(container, name);
  return wrong === undefined ? SUCCESS : failure(version, NOT_AS_ATTACHED, wrong);
};

/** undefined: it is no list of attachments. */
const validAttachments = (value: unknown): { containerId: string; interfaceName: string }[] | undefined => {
  if (!Array.isArray(value)) return undefined;
  const found = value.flatMap((entry: unknown) => {
    const { containerID, ifname } = (entry ?? {}) as { readonly containerID?: unknown; readonly ifname?: unknown };
    return typeof containerID === 'string' && typeof ifname === 'string'
      ? [{ containerId: containerID, interfaceName: ifname }]
      : [];
  });
  // What cannot be read may be a pod that is there: it is not taken for one that is gone.
  return found.length === value.length ? found : undefined;
};

const collect = async ({ cni, version }: Parsed, pods: PodNetwork): Promise<Answer> => {
  const valid = validAttachments(cni[VALID_ATTACHMENTS]);
  if (!valid)
    return failure(
      version,
      INVALID_CONFIG,
      `${VALID_ATTACHMENTS} must be a list of objects with containerID and ifname`,
    );
  const failed = await pods.keepOnly(valid, cni.network === undefined ? undefined : (cni.name ?? ''));
  return failed.length === 0 ? SUCCESS : failure(version, NOT_ALL_DETACHED, failed.join('; '));
};

/** The answer to one request. */
export const answerRequest = async (request: CniRequest, commands: Commands): Promise<Answer> => {
  let cni: CniConfig;
  try {
    cni = parseConfig(request.config);
  } catch (error) {
    return failure('1.0.0', INVALID_CONFIG, `the network configuration is no JSON object: ${(error as Error).message}`);
  }
  const parsed: Parsed = { ...request, cni, version: cni.cniVersion ?? '1.0.0' };
  const { CNI_COMMAND: command = '', CNI_CONTAINERID: container = '', CNI_IFNAME: name = '' } = request.environment;
  switch (command) {
    case 'ADD':
      return await add(parsed, commands);
    case 'STATUS':
      return status(parsed, commands);
    case 'GC':
      return await collect(parsed, commands.pods);
    case 'DEL':
      await commands.pods.detach(container, name);
      return SUCCESS;
    case 'CHECK':
      return await check(parsed, commands.pods, [container, name]);
    default:
      return failure(
        parsed.version,
        INVALID_ENVIRONMENT,
        `CNI_COMMAND is "${command}": it must be ADD, DEL, CHECK, GC or STATUS`,
      );
  }
};
