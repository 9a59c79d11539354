import { fromJSON, type PackageDefinition } from '@grpc/proto-loader';

/** The service of tailscale-cni.proto, as values: a bundle has no file beside it. service.spec.ts holds that they are the same. */

export const TAILNET_PACKAGE = 'tailscalecni';
export const TAILNET_SERVICE = 'TailscaleCNI';
/** Where the tailnet agent listens. */
export const TAILNET_SOCKET = '/var/run/tailscale-cni/daemon.sock';

export interface AddRequest {
  readonly containerId: string;
  readonly netns: string;
  readonly ifName: string;
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
  readonly clusterIp: string;
}
export interface AddResponse {
  /** Empty: not known yet. */
  readonly tailscaleIpv4: string;
  readonly tailscaleIpv6: string;
  readonly tailscaleHostname: string;
}
export interface ContainerRequest {
  readonly containerId: string;
  readonly netns: string;
  readonly ifName: string;
}
export interface CheckResponse {
  readonly healthy: boolean;
  readonly message: string;
}

type Field = readonly [name: string, type: 'string' | 'bool'];
const message = (...fields: readonly Field[]) => ({
  fields: Object.fromEntries(fields.map(([name, type], at) => [name, { type, id: at + 1 }])),
});
const texts = (...names: readonly string[]) => message(...names.map((name): Field => [name, 'string']));
const rpc = (name: string) => ({ requestType: `${name}Request`, responseType: `${name}Response`, comment: '' });
const OF_CONTAINER = ['containerId', 'netns', 'ifName'] as const;

/** As protobufjs has it, with names in camel case: on the wire there are numbers only. */
const descriptor: Parameters<typeof fromJSON>[0] = {
  nested: {
    [TAILNET_PACKAGE]: {
      nested: {
        [TAILNET_SERVICE]: { methods: { Add: rpc('Add'), Del: rpc('Del'), Check: rpc('Check') } },
        AddRequest: texts(...OF_CONTAINER, 'podName', 'podNamespace', 'podUid', 'clusterIp'),
        AddResponse: texts('tailscaleIpv4', 'tailscaleIpv6', 'tailscaleHostname'),
        DelRequest: texts(...OF_CONTAINER),
        DelResponse: message(),
        CheckRequest: texts(...OF_CONTAINER),
        CheckResponse: message(['healthy', 'bool'], ['message', 'string']),
      },
    },
  },
};

/** Absent fields are read as empty ones. */
export const tailnetDefinition = (): PackageDefinition => fromJSON(descriptor, { defaults: true });
