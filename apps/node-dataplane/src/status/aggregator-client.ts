import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Cluster, configMaps, endpointSlices, ignoreGone, readyEndpoints } from '@unbounded/kube';
import type { Forwarding, Push } from '@unbounded/status';
import { NoAggregatorError, type PushAnswer, type SendPush } from './push.port.ts';

/**
 * Pushes to one of the replicas: straight to an endpoint of the Service, which needs neither the cluster's DNS nor kube-proxy at this node.
 * Replica and authority come from the API server when a connection is made; as long as one stands, the API server may be away.
 */

export interface AggregatorPlace {
  readonly namespace: string;
  readonly service: string;
  /** Of the projected token, read for each push: the kubelet rotates it. */
  readonly tokenFile: string;
}

/** After so many answers in a row that say that it cannot, another replica is tried. */
const MOST_UNABLE = 2;
/** A push does not wait for an answer of what the node forwards by. */
const MOST_SOCKETS = 2;
/** Of the Service. */
const PORT_NAME = 'https';
const REPORTS_PATH = '/v1alpha1/reports';
const FORWARDING_PATH = `${REPORTS_PATH}/forwarding`;
/** What somebody waits for at the aggregator, words with commas between; earlier agents pass over a header, and not over another status. */
const WANTS_HEADER = 'unbounded-wants';
const MOST_WANTS = 16;
const RESYNC_STATUS = 409;
/** Of an answer: what is wrong is said in a line. */
const MOST_ANSWER_BYTES = 4096;

const compress = promisify(gzip);

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

interface Found {
  readonly endpoints: readonly Endpoint[];
  readonly authority: string;
}

const find = async (cluster: Cluster, { namespace, service }: AggregatorPlace, signal: AbortSignal): Promise<Found> => {
  const labelSelector = `kubernetes.io/service-name=${service}`;
  const slices = await cluster.client(endpointSlices).listAll({ namespace, labelSelector, signal });
  // First: where there is no aggregator there is no right to read its authority either.
  if (slices.length === 0) throw new NoAggregatorError(`there is no Service ${namespace}/${service}`);
  const bundle = await cluster.client(configMaps).get(`${service}-ca`, { namespace, signal }).catch(ignoreGone);
  const authority = bundle?.data?.['ca.crt'];
  if (authority === undefined) throw new Error(`ConfigMap ${namespace}/${service}-ca has no ca.crt yet`);
  const endpoints = readyEndpoints(slices).flatMap(({ addresses, ports }) => {
    const port = ports.find(({ name }) => name === PORT_NAME)?.port;
    return port === undefined ? [] : addresses.map((host) => ({ host, port }));
  });
  if (endpoints.length === 0) throw new Error(`Service ${namespace}/${service} has no ready endpoint`);
  return { endpoints, authority };
};

/** Of an API server that does not answer, where it is known without it who takes reports. */
const FIND_MS = 3000;

interface Target {
  readonly endpoint: Endpoint;
  readonly agent: Agent;
}

const answerText = async (response: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    length += chunk.length;
    if (length > MOST_ANSWER_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

/** It is there, and does not take the report. */
class RefusedError extends Error {
  override readonly name = 'RefusedError';
  /** By what it lacks (5xx), not by what is wrong with the report. */
  readonly isUnable: boolean;

  constructor(status: number, text: string) {
    super(`the aggregator answers ${status}: ${text}`);
    this.isUnable = status >= 500;
  }
}

interface Posting {
  readonly target: Target;
  readonly path: string;
  readonly serverName: string;
  readonly token: string;
  readonly body: Buffer;
}

interface Posted {
  readonly answer: PushAnswer;
  readonly wants: readonly string[];
}

const wantsOf = (header: string | string[] | undefined): string[] =>
  [header ?? []]
    .flat()
    .join()
    .split(',', MOST_WANTS)
    .map((word) => word.trim())
    .filter((word) => word !== '');

const post = ({ target, path, serverName, token, body }: Posting, signal: AbortSignal): Promise<Posted> =>
  new Promise((resolve, reject) => {
    const { endpoint, agent } = target;
    const headers = {
      ...{ authorization: `Bearer ${token}`, host: serverName },
      ...{ 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': body.length },
    };
    const sending = request(
      { ...endpoint, agent, method: 'POST', path, servername: serverName, headers, signal },
      (response) => {
        const { statusCode = 0 } = response;
        answerText(response)
          .then((text) => {
            const wants = wantsOf(response.headers[WANTS_HEADER]);
            if (statusCode === 204) return resolve({ answer: 'accepted', wants });
            if (statusCode === RESYNC_STATUS) return resolve({ answer: 'resync', wants: [] });
            return reject(new RefusedError(statusCode, text));
          })
          .catch(reject);
      },
    );
    sending.on('error', reject);
    sending.end(body);
  });

export interface AggregatorClient extends Disposable {
  readonly send: SendPush;
  /** To the replica that took the last push, where there still is one. @throws as `send` */
  sendForwarding(forwarding: Forwarding, signal: AbortSignal): Promise<void>;
}

/** @param onWants told of what somebody waits for (`forwarding`), with each push that is accepted meanwhile */
export const createAggregatorClient = (
  cluster: Cluster,
  place: AggregatorPlace,
  onWants: (words: readonly string[]) => void = () => undefined,
): AggregatorClient => {
  const serverName = `${place.service}.${place.namespace}.svc`;
  let target: Target | undefined;
  /** The one that was left last: not taken again while there is another. */
  let left: Endpoint | undefined;
  let unable = 0;
  const giveUp = ({ endpoint, agent }: Target): void => {
    agent.destroy();
    if (target?.agent !== agent) return; // another sending has left it already
    left = endpoint;
    unable = 0;
    target = undefined;
  };
  let found: Found | undefined;
  const connect = async (signal: AbortSignal): Promise<Target> => {
    try {
      // The rest of the time is for the push, by what is known.
      found = await find(cluster, place, found ? AbortSignal.any([signal, AbortSignal.timeout(FIND_MS)]) : signal);
    } catch (error) {
      // Without an API server they are where they were.
      if (!found || error instanceof NoAggregatorError) throw error;
    }
    const { authority } = found;
    const others = found.endpoints.filter(({ host, port }) => host !== left?.host || port !== left.port);
    const endpoints = others.length > 0 ? others : found.endpoints;
    // Nodes spread over the replicas.
    const endpoint = endpoints[Math.floor(Math.random() * endpoints.length)]!;
    return {
      endpoint,
      agent: new Agent({ keepAlive: true, maxSockets: MOST_SOCKETS, ca: authority, minVersion: 'TLSv1.2' }),
    };
  };
  /** Of two that connect at once the first one's is for both. */
  const connected = async (signal: AbortSignal): Promise<Target> => {
    if (target) return target;
    const made = await connect(signal);
    if (target) made.agent.destroy();
    return (target ??= made);
  };
  const postingOf = async (path: string, document: unknown): Promise<Omit<Posting, 'target'>> => {
    const token = readFileSync(place.tokenFile, 'utf8').trim();
    return { path, serverName, token, body: await compress(JSON.stringify(document)) };
  };
  const push = async (document: Push, signal: AbortSignal): Promise<Posted> => {
    const posting = await postingOf(REPORTS_PATH, document);
    const to = await connected(signal);
    try {
      const posted = await post({ ...posting, target: to }, signal);
      unable = 0;
      return posted;
    } catch (error) {
      // Another replica may be able to; or this one has another certificate by now.
      if (!(error instanceof RefusedError) || (error.isUnable && ++unable >= MOST_UNABLE)) giveUp(to);
      throw error;
    }
  };
  return {
    async send(report: Push, signal: AbortSignal) {
      const { answer, wants } = await push(report, signal);
      if (wants.length > 0) onWants(wants);
      return answer;
    },
    async sendForwarding(forwarding, signal) {
      // Pushes alone decide which replica it is: this answer is large, and may take longer than it has time.
      const posting = await postingOf(FORWARDING_PATH, forwarding);
      await post({ ...posting, target: await connected(signal) }, signal);
    },
    [Symbol.dispose]: () => target && giveUp(target),
  };
};
