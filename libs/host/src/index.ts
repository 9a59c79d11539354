export { limitConnections } from './connection-limit.ts';
export { drainParts } from './drain.ts';
export {
  type Check,
  type HealthServer,
  listenAddresses,
  type ListenerState,
  startHealthServer,
} from './health-server.ts';
export { type HostOptions, type HostServices, runHost } from './host.ts';
export { HOST_PARTS, hostModule } from './host-module.ts';
export { type HostPart } from './part.ts';
export { type ControlPlane, type ControlPlaneOptions, openControlPlane } from './control-plane.ts';
