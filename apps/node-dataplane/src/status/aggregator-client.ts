import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Cluster, configMaps, endpointSlices, ignoreGone } from '@unbounded/kube';
import type { Push } from '@unbounded/status';
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

/** Of the Service. */
const PORT_NAME = 'https';
const PATH = '/v1alpha1/reports';
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
  const endpoints = slices.flatMap(({ endpoints = [], ports = [] }) => {
    const port = ports.find(({ name }) => name === PORT_NAME)?.port;
    if (port === undefined) return [];
    return endpoints
      .filter(({ conditions }) => conditions?.ready !== false)
      .flatMap(({ addresses }) => addresses.map((host) => ({ host, port })));
  });
  if (endpoints.length === 0) throw new Error(`Service ${namespace}/${service} has no ready endpoint`);
  return { endpoints, authority };
};

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
}

interface Posting {
  readonly target: Target;
  readonly serverName: string;
  readonly token: string;
  readonly body: Buffer;
}

const post = ({ target, serverName, token, body }: Posting, signal: AbortSignal): Promise<PushAnswer> =>
  new Promise((resolve, reject) => {
    const { endpoint, agent } = target;
    const headers = {
      ...{ authorization: `Bearer ${token}`, host: serverName },
      ...{ 'content-type': 'application/json', 'content-encoding': 'gzip', 'content-length': body.length },
    };
    const sending = request(
      { ...endpoint, agent, method: 'POST', path: PATH, servername: serverName, headers, signal },
      (response) => {
        const { statusCode = 0 } = response;
        answerText(response)
          .then((text) => {
            if (statusCode === 204) return resolve('accepted');
            if (statusCode === RESYNC_STATUS) return resolve('resync');
            return reject(new RefusedError(`the aggregator answers ${statusCode}: ${text}`));
          })
          .catch(reject);
      },
    );
    sending.on('error', reject);
    sending.end(body);
  });

export interface AggregatorClient extends Disposable {
  readonly send: SendPush;
}

export const createAggregatorClient = (cluster: Cluster, place: AggregatorPlace): AggregatorClient => {
  const serverName = `${place.service}.${place.namespace}.svc`;
  let target: Target | undefined;
  const giveUp = (): void => {
    target?.agent.destroy();
    target = undefined;
  };
  let found: Found | undefined;
  const connect = async (signal: AbortSignal): Promise<Target> => {
    try {
      found = await find(cluster, place, signal);
    } catch (error) {
      // Without an API server they are where they were.
      if (!found || error instanceof NoAggregatorError) throw error;
    }
    const { endpoints, authority } = found;
    // Nodes spread over the replicas.
    const endpoint = endpoints[Math.floor(Math.random() * endpoints.length)]!;
    return { endpoint, agent: new Agent({ keepAlive: true, maxSockets: 1, ca: authority, minVersion: 'TLSv1.2' }) };
  };
  return {
    async send(push: Push, signal: AbortSignal) {
      const token = readFileSync(place.tokenFile, 'utf8').trim();
      const body = await compress(JSON.stringify(push));
      target ??= await connect(signal);
      try {
        return await post({ target, serverName, token, body }, signal);
      } catch (error) {
        // Else another replica may be there, with another certificate.
        if (!(error instanceof RefusedError)) giveUp();
        throw error;
      }
    },
    [Symbol.dispose]: giveUp,
  };
};
