import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { COUNTERS } from '../connectivity/kernel/firewall-parts.ts';
import { EGRESS_DROPS, FENCE_DROP } from '../egress/plan/names.ts';
import { L2_DROPS } from '../l2/guards.plan.ts';

/**
 * Each reason for which one of our nftables tables drops a packet is provoked by a packet in a specification, which reads the agent's
 * metric. Those of the eBPF programs: overlay-drops.kernel.spec.ts; of pods' frames: source-guard.kernel.spec.ts.
 */

const CONNECTIVITY = '../connectivity/kernel';
/** By reason: the specification, and what it says there. */
const PROVOKED: Readonly<Record<string, readonly [file: string, words: string]>> = {
  forged_source: [`${CONNECTIVITY}/boundary-attempts.testdata.ts`, "because('forged_source'"],
  no_route_back: [`${CONNECTIVITY}/boundary-attempts.testdata.ts`, "because('no_route_back'"],
  unlisted_exit: [`${CONNECTIVITY}/boundary-attempts.testdata.ts`, "because('unlisted_exit'"],
  unlisted_entry: [`${CONNECTIVITY}/boundary-attempts.testdata.ts`, "because('unlisted_entry'"],
  stray_echo: [`${CONNECTIVITY}/boundary-attempts.testdata.ts`, "because('stray_echo'"],
  injected_tunnel_packet: [`${CONNECTIVITY}/injection.kernel.spec.ts`, ".of('injected_tunnel_packet')"],
  overlay_leak: [`${CONNECTIVITY}/leaks.kernel.spec.ts`, ".of('overlay_leak')"],
  stray_tunnel_packet: [`${CONNECTIVITY}/multihomed-lab.testdata.ts`, 'COUNTERS.strayTunnelPacket'],
  stray_scrape: [`${CONNECTIVITY}/multihomed-lab.testdata.ts`, 'COUNTERS.strayScrape'],
  overlay_neighbor: [`${CONNECTIVITY}/neighbors.kernel.spec.ts`, 'COUNTERS.overlayNeighbor'],
  tunnel_icmp_error: [`${CONNECTIVITY}/icmp-errors-lab.testdata.ts`, ".of('tunnel_icmp_error')"],
  forged_inner_source: ['../data-path/netlink/senders.scenario.ts', 'drops.of(COUNTERS.forgedInnerSource)'],
  no_owner: ['../egress/egress.kernel.spec.ts', "['no_owner']"],
  egress_invalid: ['../egress/egress.kernel.spec.ts', "['egress_invalid']"],
  predates_rule: ['../egress/egress.kernel.spec.ts', "['predates_rule']"],
  stray_egress: ['../egress/egress.kernel.spec.ts', 'stray_egress: 2'],
  forged_egress_tunnel: ['../egress/egress.kernel.spec.ts', "['forged_egress_tunnel']"],
  egress_wrong_way: ['../egress/egress.kernel.spec.ts', "['egress_wrong_way']"],
  egress_wrong_source: ['../egress/egress.kernel.spec.ts', "['egress_wrong_source']"],
  egress_unsolicited: ['../egress/egress.kernel.spec.ts', 'egress_unsolicited: 4'],
  egress_not_owned: ['../egress/egress.kernel.spec.ts', "'egress_not_owned'"],
  l2_from_outside: ['../l2/section.kernel.spec.ts', 'l2_from_outside: '],
  l2_port: ['../l2/section.kernel.spec.ts', 'l2_port: 1'],
  l2_leak: ['../l2/section.kernel.spec.ts', 'l2_leak: 1'],
  l2_error: ['../l2/section.kernel.spec.ts', "['l2_error']"],
};

test('each reason of a table has its packet', () => {
  const reasons = [...Object.values(COUNTERS), ...Object.values(EGRESS_DROPS), FENCE_DROP, ...Object.values(L2_DROPS)];
  expect(Object.keys(PROVOKED).sort()).toEqual([...reasons].sort());
});

test.each(Object.entries(PROVOKED))('%s: its specification reads it', (_, [file, words]) => {
  expect(readFileSync(join(import.meta.dirname, file), 'utf8')).toContain(words);
});
