import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import { tailnetAnnotations } from '@unbounded/crds';
import { type AddRequest, type AddResponse, type CheckResponse, tailnetDefinition } from '@unbounded/tailnet-cni';
import type { AddedPod, Annotations } from '../attachment/hook.port.ts';
import type { PodAttachment } from '../attachment/pods.ts';

/** A tailnet agent on a unix socket that does what a test says, and pods that ask for it. */

export const socketPath = (): string => join(mkdtempSync(join(tmpdir(), 'tailnet-')), 'daemon.sock');

/** The pod is to be no device. */
export class NoDevice extends Error {}

export interface AgentTrouble {
  add?: (request: AddRequest) => Promise<Partial<AddResponse>>;
  check?: (containerId: string) => CheckResponse;
}

type Reply = (error: { readonly code: status; readonly details: string } | null, value?: object) => void;

/** Knows the containers that were added; `calls` has what it was asked, in order. */
export const startTailnetAgent = async (path: string, trouble: AgentTrouble = {}) => {
  const [calls, known, requests]: [string[], Set<string>, AddRequest[]] = [[], new Set(), []];
  const add = async (request: AddRequest): Promise<Partial<AddResponse>> => {
    calls.push(`add ${request.containerId}`);
    requests.push(request);
    const answer = await (trouble.add ?? (async () => ({ tailscaleIpv4: '100.64.0.1' })))(request);
    known.add(request.containerId);
    return answer;
  };
  const check = (containerId: string): CheckResponse => {
    if (containerId !== '') calls.push(`check ${containerId}`);
    if (trouble.check) return trouble.check(containerId);
    const healthy = known.has(containerId);
    return { healthy, message: healthy ? 'healthy' : 'pod not found' };
  };
  const server = new Server();
  server.addService(tailnetDefinition()['tailscalecni.TailscaleCNI'] as ServiceDefinition, {
    Add: ({ request }: { request: AddRequest }, reply: Reply) =>
      void add(request).then(
        (answer) => reply(null, answer),
        (error: Error) => {
          const code = error instanceof NoDevice ? status.FAILED_PRECONDITION : status.UNAVAILABLE;
          reply({ code, details: error.message });
        },
      ),
    Del: ({ request }: { request: AddRequest }, reply: Reply) => {
      calls.push(`del ${request.containerId}`);
      known.delete(request.containerId);
      reply(null, {});
    },
    Check: ({ request }: { request: AddRequest }, reply: Reply) => reply(null, check(request.containerId)),
  });
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  return { calls, known, requests, stop: () => server.forceShutdown() };
};

export const podOf = (name: string): PodAttachment => ({
  ...{ namespace: 'shop', name, uid: `uid-${name}`, containerId: name, netns: `/run/netns/${name}` },
  ...{ interface: 'eth0', hostVeth: 'veth0', addresses: ['100.65.1.9/24', 'fd00::9/64'] },
});

export const annotated = (join: string | undefined): Annotations =>
  join === undefined ? {} : { [tailnetAnnotations.join]: join };

/** At ADD, with the value of its annotation. */
export const addedPod = (name: string, join: string | undefined): AddedPod => ({
  ...podOf(name),
  annotations: async () => annotated(join),
});
