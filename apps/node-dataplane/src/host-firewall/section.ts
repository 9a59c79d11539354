import type { Nftables } from '@unbounded/nftables';
import type { AgentConfig } from '../agent.config.ts';
import type { SectionType } from '../section.port.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { closeFirewalld, openFirewalldFirewall } from './firewalld/firewalld-firewall.ts';
import { openIptablesFirewall } from './iptables/iptables-firewall.ts';
import { createIptables, type Iptables } from './iptables/iptables.ts';
import { ensureOpenings } from './iptables/openings.ts';

/**
 * What belongs to the overlay passes the host's own firewalls, and nothing else does; reported alone, where the operator wants it so. Each
 * firewall has a dialect of its own: iptables a rule that takes our mark, firewalld a zone and policies.
 */

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);

/** Listed before connectivity: its first table has the marks, if the last one had them. */
export const hostFirewall = (
  { hostFirewall: mode, dbusSocket }: Pick<AgentConfig, 'hostFirewall' | 'dbusSocket'>,
  openIptables: (nft: Nftables) => Iptables = (nft) => createIptables({ nft }),
  elapsed = (): number => performance.now(),
): SectionType => ({
  name: 'hostfirewall',
  async open(context) {
    const chains = context.metrics.gauge({
      name: 'unbounded_host_firewall_chains',
      help: 'Chains of host firewalls that refuse whatever nobody has accepted: those that let the overlay pass, and those that do not.',
      labels: ['overlay'],
    });
    const logProblems = createProblemLog(context.logger);
    const firewalls = [
      openIptablesFirewall(context, openIptables(context.nft), { mode, elapsed }),
      openFirewalldFirewall(context, dbusSocket, { mode, elapsed }),
    ];
    return {
      async pass() {
        const passes = await Promise.all(firewalls.map((firewall) => firewall.pass()));
        const problems = passes.flatMap((one) => one.problems);
        const blocking = sum(passes, (one) => one.blocking);
        chains.set({ overlay: 'accepted' }, sum(passes, (one) => one.refusing) - blocking);
        chains.set({ overlay: 'refused' }, blocking);
        logProblems(problems);
        const nextPassMs = Math.min(...passes.map((one) => one.nextPassMs));
        return { nextPassMs, report: { problems, events: passes.flatMap(({ events }) => events) } };
      },
      async stop() {
        for (const firewall of firewalls) firewall.stop();
      },
    };
  },
  async cleanUp({ nft, say }) {
    // A table that cannot be read has no rule of ours: it could not be read before either.
    const { problems, isStuck } = await ensureOpenings(openIptables(nft), 'Report');
    const failures = problems.filter(({ reason }) => reason === 'HostFirewallNotManaged').map(({ message }) => message);
    for (const message of failures) say(message);
    await closeFirewalld(dbusSocket);
    if (isStuck) throw new Error(failures.join('; '));
  },
});
