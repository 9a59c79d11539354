import { DEVICES } from '@unbounded/config/ownership';
import type { ChainSpec, Expression, RuleSpec } from '@unbounded/nftables';
import { isIn } from '../../kernel/address-sets.ts';
import { baseOf, EGRESS_CHAINS } from '../../kernel/base-chains.ts';
import { FAMILIES } from '../../kernel/nft-family.ts';
import {
  byDevice,
  clearMark,
  decide,
  type Decision,
  drop,
  fromDevice,
  isAnswer,
  isMarked,
  leftFromHere,
  neighborDiscovery,
  openedTo,
  rule,
  SETS,
} from './names.ts';

/**
 * What was decided is what happens: the routes lead where the mark says, and nothing leaves with a source that is not its own, whatever
 * became of routes, rules and connections.
 */

const stop: Expression = { do: 'return' };
const byOverlay: Expression = { match: 'device', key: 'oifname', op: '==', set: SETS.overlay };
const notByOverlay: Expression = { match: 'device', key: 'oifname', op: '!=', set: SETS.overlay };

const way: readonly RuleSpec[] = [
  ...FAMILIES.map((family) =>
    rule(`${family}: to a pod by an egress address`, openedTo(family, SETS.owned), ...drop('unsolicited')),
  ),
  ...(['steer', 'answer'] as const).map((decision) =>
    rule(`${decision}: by the tunnel alone`, isMarked(decision), byDevice(DEVICES.egress, '!='), ...drop('wrongWay')),
  ),
  rule(
    'nothing else by the tunnel',
    byDevice(DEVICES.egress),
    isMarked('steer', '!='),
    isMarked('answer', '!='),
    ...drop('wrongWay'),
  ),
  rule('out of the cluster alone', isMarked('translate'), byOverlay, ...drop('wrongWay')),
  rule('out of the tunnel, on with an egress address', isMarked('translate'), stop),
  rule('out of the tunnel, to a pod', fromDevice(DEVICES.egress), isMarked('pass'), byDevice(DEVICES.bridge), stop),
  rule('out of the tunnel to nobody', fromDevice(DEVICES.egress), ...drop('wrongWay')),
];

/**
 * Of the node itself, to a partner about an answer, which is too large for the tunnel for example: connection tracking gives it the
 * egress address as its source, behind this hook.
 */
const errors: readonly RuleSpec[] = FAMILIES.map((family) =>
  rule(
    `${family}: an error about a connection that leaves here`,
    notByOverlay, // to its pod it goes by the overlay, from the node
    { match: 'ct-state', states: ['related'] },
    leftFromHere(family),
    ...decide('translate'),
  ),
);

const withoutMark = (decision: Decision): RuleSpec => rule('decided and done', isMarked(decision), clearMark);

const leaving: readonly RuleSpec[] = [
  ...FAMILIES.map((family) =>
    rule(
      `${family}: not translated`,
      isMarked('translate'),
      isIn(family, 'saddr', SETS.owned, '!='),
      ...drop('wrongSource'),
    ),
  ),
  rule('translated', isMarked('translate'), clearMark, stop),
  ...neighborDiscovery,
  ...FAMILIES.map((family) =>
    rule(
      `${family}: an egress address, for who may not have it`,
      isIn(family, 'saddr', SETS.owned),
      ...drop('wrongSource'),
    ),
  ),
  ...(['steer', 'pass', 'answer'] as const).map(withoutMark),
  rule('an answer to who came in', isAnswer, stop),
  ...FAMILIES.map((family) =>
    rule(
      `${family}: a pod's own address, of a connection that nobody translates`,
      fromDevice(DEVICES.bridge),
      notByOverlay,
      isIn(family, 'saddr', SETS.podBlocks),
      isIn(family, 'daddr', SETS.cluster, '!='),
      ...drop('wrongSource'),
    ),
  ),
];

export const planGuards = (): ChainSpec[] => [
  { name: EGRESS_CHAINS.way.name, base: baseOf(EGRESS_CHAINS.way), rules: way },
  { name: EGRESS_CHAINS.errors.name, base: baseOf(EGRESS_CHAINS.errors), rules: errors },
  { name: EGRESS_CHAINS.leaving.name, base: baseOf(EGRESS_CHAINS.leaving), rules: leaving },
];
