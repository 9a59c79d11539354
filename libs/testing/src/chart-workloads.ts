import { type Manifest, renderChartOnce } from './chart.ts';

/** What specs read of a container. */
interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly securityContext: {
    readonly privileged?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities: { readonly drop: readonly string[]; readonly add?: readonly string[] };
  };
}
/** What specs read of a Deployment or DaemonSet. */
interface Workload extends Manifest {
  readonly spec: {
    readonly replicas?: number;
    readonly updateStrategy?: { readonly type: string };
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly hostPID?: boolean;
        readonly shareProcessNamespace?: boolean;
        readonly automountServiceAccountToken?: boolean;
        readonly securityContext: { readonly runAsNonRoot?: boolean };
        readonly containers: readonly Container[];
        readonly initContainers?: readonly Container[];
        readonly volumes?: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
      };
    };
  };
}

/** Deployments and DaemonSets of the chart, by name. */
export const workloads = (values: object = {}): Map<string, Workload> =>
  new Map(
    renderChartOnce({ values })
      .filter((object) => object.kind === 'Deployment' || object.kind === 'DaemonSet')
      .map((object) => [object.metadata.name, object as Workload]),
  );
export const podOf = (name: string, values?: object) => workloads(values).get(name)!.spec.template.spec;
