import { hostModule, type HostServices } from '@unbounded/host';
import type { AgentConfig } from './agent.config.ts';
import { openAgent } from './agent/open-agent.ts';
import { sectionsOf } from './agent/sections.ts';

export const agentModule = (config: AgentConfig) => (services: HostServices) =>
  hostModule(() => [openAgent(config, services, sectionsOf(config, services))]);
