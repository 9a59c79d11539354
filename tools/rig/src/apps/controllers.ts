import { join } from 'node:path';
import { apiServerUrl, type LabLayout, namespaceOf } from '../layout/layout.ts';
import { inNamespace } from '../machine/command.ts';
import { pidOf, startDaemon } from '../machine/daemon.ts';
import { appBundle, controlPlaneDir, nodeJs } from '../machine/paths.ts';
import { caFile } from './tailnet-place.ts';
import { dnsFlags } from '../underlay/names.ts';
import { writeTokenKubeconfig } from './token-kubeconfig.ts';
import { CONTROLLERS, controllersOf, controllerTokenFile } from './tokens.ts';

/** The controllers, our apps beside the API server, as processes. */

const REPLICAS = [1, 2] as const;
const TOKEN_DEADLINE_MS = 30_000;
const HEALTH_PORT_FIRST = 9101;
/** So often that a test sees what it leads to. */
const SWEEP_INTERVAL = '15s';

const controllerName = (app: string, replica: number): string => `${app}-${replica}`;

/** Log and process names of the controllers' replicas. */
export const controllerDaemons = (layout: LabLayout): string[] =>
  controllersOf(layout).flatMap((app) => REPLICAS.map((replica) => controllerName(app, replica)));

const healthPortOf = (app: (typeof CONTROLLERS)[number], replica: number): number =>
  HEALTH_PORT_FIRST + 2 * CONTROLLERS.indexOf(app) + replica - 1;

interface ControllerMetrics {
  readonly app: string;
  readonly name: string;
  /** TCP, at every address of the node of the control plane. */
  readonly port: number;
}

/** Where the replicas have their metrics. */
export const controllerMetrics = (layout: LabLayout): ControllerMetrics[] =>
  controllersOf(layout).flatMap((app) =>
    REPLICAS.map((replica) => ({ app, name: controllerName(app, replica), port: healthPortOf(app, replica) })),
  );

/** Starts one replica of a controller. */
export const startController = async (
  layout: LabLayout,
  app: (typeof CONTROLLERS)[number],
  replica: number,
): Promise<void> => {
  const name = controllerName(app, replica);
  if (pidOf(name) !== undefined) return;
  const kubeconfig = join(controlPlaneDir, `${app}.kubeconfig`);
  await writeTokenKubeconfig(kubeconfig, {
    server: apiServerUrl(layout, layout.controlPlane.site),
    tokenFile: controllerTokenFile(app),
    deadlineMs: TOKEN_DEADLINE_MS,
  });
  startDaemon(
    name,
    [
      ...inNamespace(namespaceOf(layout.controlPlane.name)),
      nodeJs,
      appBundle(app),
      '--kubeconfig',
      kubeconfig,
      '--health-port',
      String(healthPortOf(app, replica)),
      ...(app === 'gateway-health' ? dnsFlags(layout) : []),
      ...(app === 'tailnet-registrar' ? ['--sweep-interval', SWEEP_INTERVAL] : []),
    ],
    {
      env: { ...process.env, POD_NAME: name, ...(app === 'tailnet-registrar' ? { NODE_EXTRA_CA_CERTS: caFile } : {}) },
    },
  );
};

export const startControllers = async (layout: LabLayout): Promise<void> => {
  for (const app of controllersOf(layout)) for (const replica of REPLICAS) await startController(layout, app, replica);
};
