import { AGENT_PORT, TAILNET_PORT } from '../../apps/agent-state.ts';
import { aggregatorMetrics } from '../../apps/aggregator.ts';
import { controllerMetrics } from '../../apps/controllers.ts';
import { hasRelay, RELAY_HEALTH_PORT } from '../../apps/relay-place.ts';
import { AGGREGATOR, NAMESPACE, NODE_AGENT, TAILNET_AGENT } from '../../apps/tokens.ts';
import { hostOf } from '../../layout/addresses.ts';
import { type LabLayout, worldIps } from '../../layout/layout.ts';

/** Where the programs of a lab have their metrics, with the labels that the chart's PodMonitor gives them. */

interface Target {
  /** `unbounded-` and the program. */
  readonly job: string;
  readonly address: string;
  readonly labels: Readonly<Record<'node' | 'pod' | 'namespace' | 'container', string>>;
}

const target = (app: string, address: string, node: string, pod = `${app}-${node}`): Target => ({
  ...{ job: `unbounded-${app}`, address },
  labels: { node, pod, namespace: NAMESPACE, container: app },
});

export const targetsOf = (layout: LabLayout): Target[] => {
  const { nodes, controlPlane, options } = layout;
  const own = (port: number): string => `127.0.0.1:${port}`; // it runs there, too
  const agents = nodes.flatMap(({ name, internalIp }) => [
    target(NODE_AGENT, `${hostOf(internalIp)}:${AGENT_PORT}`, name),
    ...(options.tailnet ? [target(TAILNET_AGENT, `${hostOf(internalIp)}:${TAILNET_PORT}`, name)] : []),
  ]);
  const controllers = controllerMetrics(layout).map(({ app, name, port }) =>
    target(app, own(port), controlPlane.name, name),
  );
  const aggregators = aggregatorMetrics(layout).map(({ name, port }) =>
    target(AGGREGATOR, own(port), controlPlane.name, name),
  );
  const relays = hasRelay(layout)
    ? [target('relay', `${hostOf(worldIps(layout)[0]!)}:${RELAY_HEALTH_PORT}`, 'world')]
    : [];
  return [...agents, ...controllers, ...aggregators, ...relays];
};
