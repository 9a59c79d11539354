import { GROUP_VERSION } from '@unbounded/crds';
import { type LabLayout, namespaceOf, WAN } from '../../layout/layout.ts';
import { UsageError } from '../../layout/usage-error.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import { binary } from '../../machine/paths.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { makeWanHost } from '../wan-host.ts';
import { partnerChecks } from './checks.ts';
import { EXAMPLE_RULE } from './example.ts';
import { firewall, LIST_SEEN, type Seen, seenAsTable, seenIn } from './firewall.ts';
import { admittedBlocks, EGRESS_LABEL, hasPartner, isEligible, PARTNER, partnerIps } from './layout.ts';

/** A host beyond the sites that admits listed addresses alone, and a pool of these for pods to leave with. */

const namespace = namespaceOf(PARTNER);

const makeHost = (layout: LabLayout): void => {
  if (!makeWanHost(PARTNER, WAN.partnerPort, partnerIps(layout))) return;
  run([...inNamespace(namespace), 'nft', '-f', '-'], { input: firewall(admittedBlocks(layout)) });
};

/** Everyone who has sent something to the partner since it is there. */
export const seenByPartner = (): Seen[] => seenIn(run([...inNamespace(namespace), ...LIST_SEEN]));

/** What the administrator prepares; a rule that uses it is for whoever has pods. */
const pool = (layout: LabLayout): object => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressIPPool',
  metadata: { name: PARTNER },
  spec: { blocks: admittedBlocks(layout), nodeSelector: { matchLabels: EGRESS_LABEL } },
});

export const partner: Feature = {
  ...NOTHING,
  manifests: (layout) => (hasPartner(layout) ? [pool(layout)] : []),
  examples: (layout) => (hasPartner(layout) ? [EXAMPLE_RULE] : []),
  labels: (layout, node) => (isEligible(layout, node) ? EGRESS_LABEL : {}),
  start(layout) {
    if (!hasPartner(layout)) return;
    makeHost(layout);
    if (pidOf(PARTNER) === undefined) startDaemon(PARTNER, [...inNamespace(namespace), binary('probe'), 'serve']);
  },
  daemons: (layout) => (hasPartner(layout) ? [PARTNER] : []),
  checks: (ground) => (hasPartner(ground.layout) ? partnerChecks(ground, seenByPartner) : Promise.resolve([])),
  commands: {
    partner(words, running) {
      if (words.length > 0) throw new UsageError(`tools/lab partner takes nothing more, not "${words.join(' ')}"`);
      const layout = running();
      if (!hasPartner(layout)) throw new UsageError('this lab has no partner: tools/lab down, then up --partner');
      console.log(seenAsTable(seenByPartner()));
      return layout;
    },
  },
};
