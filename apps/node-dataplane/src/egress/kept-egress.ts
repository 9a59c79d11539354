import { tryParseAddress, tryParsePrefix } from '@unbounded/ip';
import type { Logger } from '@unbounded/telemetry';
import { z } from 'zod';
import type { KeptSection } from '../section.port.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** The last plan of egress and what is known of pods, in a file: parsed by the version of its form, never believed. */
export interface KeptEgress {
  readonly plan: EgressPlan;
  /** UIDs of pods that no rule selects. */
  readonly freePods: readonly string[];
}

const VERSION = 1;

const address = z.string().refine((text) => tryParseAddress(text) !== undefined, 'must be an address');
const prefix = z
  .string()
  .refine(
    (text) => tryParsePrefix(text) !== undefined || tryParseAddress(text) !== undefined,
    'must be a prefix or an address',
  );
const texts = z.array(z.string());

const route = z.object({
  rule: z.string(),
  destinations: z.array(prefix),
  except: z.array(prefix),
  egress: z.array(z.object({ address, owner: z.string() })),
  unavailable: z.enum(['drop', 'pass']),
});
const podClass = z.object({
  routes: z.array(route),
  pods: z.array(z.object({ uid: z.string(), node: z.string(), addresses: z.array(address) })),
});
const nextHop = z.object({ router: address, device: z.string() });
const plan: z.ZodType<EgressPlan> = z.object({
  node: z.string(),
  overlayAddresses: z.array(address),
  mtuBytes: z.int().min(1),
  podCidrs: z.array(prefix),
  overlayDevices: texts,
  cluster: z.array(prefix),
  apiServices: z.array(address),
  peers: z.array(z.object({ node: z.string(), overlayAddresses: z.array(address) })),
  steered: z.array(podClass),
  translated: z.array(podClass),
  addresses: z.array(z.object({ address, device: z.string().optional(), nextHop: nextHop.optional() })) as z.ZodType<
    EgressPlan['addresses']
  >,
});
const form: z.ZodType<KeptEgress> = z.object({ plan, freePods: texts });

/** Undefined: there is none, or none that can be used, which is logged. */
export const readKeptEgress = (kept: KeptSection, logger: Logger): KeptEgress | undefined => {
  const found = kept.read();
  if (!found) return undefined;
  if (found.version !== VERSION) {
    logger.warn(
      { version: found.version },
      'the kept plan of egress is of another version: pods reach the cluster alone until their rules are known',
    );
    return undefined;
  }
  const parsed = form.safeParse(found.plan);
  if (parsed.success) return parsed.data;
  logger.warn(
    { reason: z.prettifyError(parsed.error) },
    'the kept plan of egress is unusable: pods reach the cluster alone until their rules are known',
  );
  return undefined;
};

export const keepEgress = (kept: KeptSection, egress: KeptEgress): void =>
  kept.write({ version: VERSION, plan: egress });
