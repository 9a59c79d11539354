import type { Problem } from '@unbounded/topology';
import type { AgentConfig } from '../agent.config.ts';
import type { NodeEvent } from '../section.port.ts';

/** Accept: firewalls of the host let the overlay pass. Report: a condition that says what they refuse; nothing of ours is in them. */
export type HostFirewallMode = AgentConfig['hostFirewall'];

/** One of the firewalls that hosts have: its tables are looked at when that is due, and changed as the mode wants it. */
export interface HostFirewall {
  pass(): Promise<HostFirewallPass>;
  stop(): void;
}

interface HostFirewallPass {
  /** In how many milliseconds the next pass is due at the latest. */
  readonly nextPassMs: number;
  readonly problems: readonly Problem[];
  readonly events: readonly NodeEvent[];
  /** Chains that refuse whatever nobody has accepted, and of these those that refuse the overlay, too. */
  readonly refusing: number;
  readonly blocking: number;
}
