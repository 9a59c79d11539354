import { type ConfigOf, controlPlaneOptions, duration, option } from '@unbounded/config';
import { type Prefix, tryParsePrefix } from '@unbounded/ip';
import { z } from 'zod';

const VALID = 'must be blocks like 10.96.0.0/12 or fd00:10:96::/112, comma-separated, without bits after their length';

/** Blocks, comma-separated. One that is none is refused: an egress address could be taken from what was meant. */
const blocks: z.ZodType<readonly Prefix[]> = z
  .string()
  .optional()
  .transform((given, context) => {
    const texts = given === undefined ? [] : given.split(',').map((text) => text.trim());
    const prefixes = texts.map(tryParsePrefix);
    const wrong = texts.filter((_, index) => prefixes[index] === undefined);
    if (wrong.length === 0) return prefixes as Prefix[];
    const reason = `${wrong.map((text) => `"${text}"`).join(', ')} ${wrong.length === 1 ? 'is no block' : 'are no blocks'}`;
    context.issues.push({ code: 'custom', message: `${reason}: ${VALID}`, input: given });
    return z.NEVER;
  });

/** What the explanation of a packet depends on, too. */
export const clusterOptions = {
  kubeconfig: controlPlaneOptions.kubeconfig,
  serviceCidrs: option(
    blocks,
    'Service CIDRs, comma-separated: no egress address is taken from them; in addition to those of the API server (ServiceCIDRs) and to the addresses that Services have.',
  ),
};

export const staticEgressOptions = {
  ...controlPlaneOptions,
  ...clusterOptions,
  agentTimeout: option(
    duration('15s'),
    'Time without a new heartbeat of its agent after which a node counts as silent; agents send one every 5 s.',
  ),
  ownerGrace: option(
    duration('30s'),
    'Time for which a node whose Node was deleted keeps its addresses: the machine may still run, and falls silent by itself after 23 s.',
  ),
};
export type StaticEgressConfig = ConfigOf<typeof staticEgressOptions>;
