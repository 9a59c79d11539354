import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Logger } from '@unbounded/telemetry';
import type { PlanGate } from './plan-gate.ts';
import type { PodAttachment } from './pods.ts';
import { HookError, type PodNetwork } from './pod-network.ts';
import { type CniRequest, decodeRequest } from './request.codec.ts';

/**
 * Answers the CNI binary: lets pods in once a plan is applied, attaches the pod on ADD, detaches it on DEL, passes the plug-ins'
 * result on.
 */

/** Error codes of the CNI specification (1.0.0, section "Error"). */
const INVALID_CONFIG = 7;
const INVALID_ENVIRONMENT = 4;
const TRY_AGAIN_LATER = 11;
/** Of STATUS (1.1.0). */
const NOT_AVAILABLE = 50;
/** From 100 on they are a plug-in's own. */
const NOT_AS_ATTACHED = 100;
const IDLE_MS = 30_000;

interface CniConfig {
  readonly cniVersion?: string;
  readonly prevResult?: {
    readonly interfaces?: readonly { readonly name?: string; readonly mac?: string; readonly sandbox?: string }[];
    readonly ips?: readonly { readonly address?: string; readonly interface?: number }[];
  };
}

interface Answer {
  readonly exitCode: number;
  readonly output: string;
}

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

/** As the plug-in wrote it that made the interface: before anything ran in the pod. */
const macOf = (config: CniConfig, interfaceName: string): string | undefined => {
  const inside = config.prevResult?.interfaces?.find(({ name, sandbox }) => sandbox && name === interfaceName);
  const mac = inside?.mac?.toLowerCase();
  return mac !== undefined && MAC.test(mac) ? mac : undefined;
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
  };
};

const parseConfig = (json: string): CniConfig => {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null) throw new TypeError(`it is ${JSON.stringify(value)}`);
  return value;
};

const NO_PLAN_YET =
  "the node's network is not set up yet: no plan has been applied since it booted (see the log and the Node's condition UnboundedNetworkDegraded)";

const attach = async (pods: PodNetwork, version: string, pod: PodAttachment, result: object): Promise<Answer> => {
  try {
    await pods.attach(pod);
  } catch (error) {
    const { message: cause } = error as Error;
    const message =
      error instanceof HookError ? cause : `the pod cannot be kept to its own MAC and addresses: ${cause}`;
    return failure(version, TRY_AGAIN_LATER, message);
  }
  return { exitCode: 0, output: `${JSON.stringify({ cniVersion: version, ...result })}\n` };
};

const add = async (request: CniRequest, config: CniConfig, pods: PodNetwork): Promise<Answer> => {
  const version = config.cniVersion ?? '1.0.0';
  if (!config.prevResult)
    return failure(version, INVALID_CONFIG, 'prevResult is missing: this plug-in stands after bridge in the list');
  return await attach(pods, version, attachmentOf(request, config), config.prevResult);
};

/** The answer to one request. */
const answerRequest = async (
  request: CniRequest,
  { pods, gate }: Pick<CniServerParts, 'pods' | 'gate'>,
): Promise<Answer> => {
  let config: CniConfig;
  try {
    config = parseConfig(request.config);
  } catch (error) {
    return failure('1.0.0', INVALID_CONFIG, `the network configuration is no JSON object: ${(error as Error).message}`);
  }
  const version = config.cniVersion ?? '1.0.0';
  const {
    CNI_COMMAND: command = '',
    CNI_CONTAINERID: container = '',
    CNI_IFNAME: interfaceName = '',
  } = request.environment;
  switch (command) {
    case 'ADD':
      return gate.isOpen ? await add(request, config, pods) : failure(version, TRY_AGAIN_LATER, NO_PLAN_YET);
    case 'STATUS':
      return gate.isOpen ? { exitCode: 0, output: '' } : failure(version, NOT_AVAILABLE, NO_PLAN_YET);
    case 'DEL':
      await pods.detach(container, interfaceName);
      return { exitCode: 0, output: '' };
    case 'CHECK': {
      const wrong = await pods.check(container, interfaceName);
      return wrong === undefined ? { exitCode: 0, output: '' } : failure(version, NOT_AS_ATTACHED, wrong);
    }
    default:
      return failure(
        version,
        INVALID_ENVIRONMENT,
        `CNI_COMMAND is "${command}": ADD, DEL, CHECK or STATUS would be right`,
      );
  }
};

export interface CniServerParts {
  readonly pods: PodNetwork;
  /** Until it is open no pod is let in. */
  readonly gate: Pick<PlanGate, 'isOpen'>;
  readonly logger: Logger;
}

const answer = async (socket: Socket, request: CniRequest, parts: CniServerParts): Promise<void> => {
  const { exitCode, output } = await answerRequest(request, parts);
  const { CNI_COMMAND: command, CNI_CONTAINERID: container } = request.environment;
  parts.logger.info({ command, container, exitCode }, 'CNI request');
  socket.end(Buffer.concat([Buffer.from([exitCode]), Buffer.from(output)]));
};

const serve = (socket: Socket, parts: CniServerParts): void => {
  const { logger } = parts;
  const refuse = (error: unknown): void => {
    logger.error({ error: (error as Error).message }, 'a CNI request was refused');
    socket.destroy();
  };
  let received = Buffer.alloc(0);
  let isAnswered = false;
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', (error) => logger.warn({ error: error.message }, 'the CNI binary went away'));
  socket.on('data', (chunk: Buffer) => {
    if (isAnswered) return;
    received = Buffer.concat([received, chunk]);
    try {
      const request = decodeRequest(received);
      if (!request) return;
      isAnswered = true;
      answer(socket, request, parts).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  });
};

/** Listens on a unix socket that only root may use. */
export const startCniServer = async (path: string, parts: CniServerParts): Promise<Server> => {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true }); // what a killed process left
  const server = createServer({ allowHalfOpen: true }, (socket) => serve(socket, parts));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  return server;
};
