import type { HostServices } from '@unbounded/host';
import type { AgentConfig } from '../agent.config.ts';
import { connectivity } from '../connectivity/section.ts';
import { egressSection } from '../egress/section.ts';
import { hostFirewall } from '../host-firewall/section.ts';
import { l2Section } from '../l2/section.ts';
import { networkManagers } from '../network-managers/section.ts';
import type { SectionType } from '../section.port.ts';
import { tailnetSection } from '../tailnet/section.ts';

/** What the agent does, in the order in which it is opened. */
export const sectionsOf = (
  config: AgentConfig,
  services: Pick<HostServices, 'listenerProblems'> = {},
): SectionType[] => [
  hostFirewall(config),
  ...(config.egress === 'On' ? [egressSection()] : []),
  connectivity(config, services),
  ...(config.l2 === 'On' ? [l2Section(config)] : []),
  ...(config.tailnet ? [tailnetSection(config)] : []),
  ...(config.hostEtcDir === undefined ? [] : [networkManagers(config.hostEtcDir)]),
];
