export { listenAddresses } from './health-server.ts';
export { type HostServices, runHost } from './host.ts';
export { hostModule } from './host-module.ts';
export type { HostPart } from './part.ts';
