import { hostModule, type HostServices } from '@unbounded/host';
import { type AgentConfig, createAgentPart } from './agent.part.ts';

export const agentModule = (config: AgentConfig) => (services: HostServices) =>
  hostModule(() => [createAgentPart(config, services)]);
