import { chmodSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Logger } from '@unbounded/telemetry';
import type { PodAttachment, PodRegistry } from './pods.ts';
import { type CniRequest, decodeRequest } from './request.codec.ts';

/** Answers the CNI binary: remembers the pod on ADD, forgets it on DEL, passes the plug-ins' result on. */

/** Error codes of the CNI specification (1.0.0, section "Error"). */
const INVALID_CONFIG = 7;
const INVALID_ENVIRONMENT = 4;
const IDLE_MS = 30_000;

interface CniConfig {
  readonly cniVersion?: string;
  readonly prevResult?: {
    readonly interfaces?: readonly { readonly name?: string; readonly sandbox?: string }[];
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
    addresses: (config.prevResult?.ips ?? []).flatMap(({ address }) => address ?? []),
  };
};

const parseConfig = (json: string): CniConfig => {
  const value: unknown = JSON.parse(json);
  if (typeof value !== 'object' || value === null) throw new TypeError(`it is ${JSON.stringify(value)}`);
  return value;
};

/** The answer to one request. */
export const answerRequest = (request: CniRequest, pods: PodRegistry): Answer => {
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
      if (!config.prevResult)
        return failure(version, INVALID_CONFIG, 'prevResult is missing: this plug-in stands after bridge in the list');
      pods.add(attachmentOf(request, config));
      return { exitCode: 0, output: `${JSON.stringify({ cniVersion: version, ...config.prevResult })}\n` };
    case 'DEL':
      pods.remove(container, interfaceName);
      return { exitCode: 0, output: '' };
    case 'CHECK':
      return { exitCode: 0, output: '' };
    default:
      return failure(version, INVALID_ENVIRONMENT, `CNI_COMMAND is "${command}": ADD, DEL or CHECK would be right`);
  }
};

const serve = (socket: Socket, pods: PodRegistry, logger: Logger): void => {
  let received = Buffer.alloc(0);
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on('error', (error) => logger.warn({ error: error.message }, 'the CNI binary went away'));
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    try {
      const request = decodeRequest(received);
      if (!request) return;
      const answer = answerRequest(request, pods);
      logger.info(
        {
          command: request.environment['CNI_COMMAND'],
          container: request.environment['CNI_CONTAINERID'],
          exitCode: answer.exitCode,
        },
        'CNI request',
      );
      socket.end(Buffer.concat([Buffer.from([answer.exitCode]), Buffer.from(answer.output)]));
    } catch (error) {
      logger.error({ error: (error as Error).message }, 'a CNI request was refused');
      socket.destroy();
    }
  });
};

/** Listens on a unix socket that only root may use. */
export const startCniServer = async (path: string, pods: PodRegistry, logger: Logger): Promise<Server> => {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true }); // what a killed process left
  const server = createServer({ allowHalfOpen: true }, (socket) => serve(socket, pods, logger));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
  return server;
};
