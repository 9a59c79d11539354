import type { Logger } from '@unbounded/telemetry';
import type { NodePlan } from '@unbounded/topology';
import { z } from 'zod';
import type { KeptSection, VersionedPlan } from '../section.port.ts';
import { nodePlanV1 } from './kept-plan-v1.ts';

/** The last good plan: intent, which any data path renders. It is parsed by the version of its form, never believed. */

/** Of the form that is written. A form that changes the meaning of a field, or its type, is the next version. */
const VERSION = 1;

const FORMS: ReadonlyMap<number, z.ZodType<NodePlan>> = new Map([[VERSION, nodePlanV1]]);

const describe = ({ issues }: z.ZodError): string => {
  const [{ path, message } = { path: [], message: 'must be a plan' }] = issues;
  const more = issues.length > 1 ? `; and ${issues.length - 1} more` : '';
  return `plan${path.length === 0 ? '' : `.${z.core.toDotPath(path)}`}: ${message}${more}`;
};

/** @param reject is told why there is no plan of it */
export const parseKeptPlan = (
  { version, plan }: VersionedPlan,
  reject: (reason: string) => void,
): NodePlan | undefined => {
  const form = FORMS.get(version);
  if (!form) {
    reject(`version ${version} of the form: this agent reads ${[...FORMS.keys()].join(', ')}`);
    return undefined;
  }
  const parsed = form.safeParse(plan);
  if (parsed.success) return parsed.data;
  reject(describe(parsed.error));
  return undefined;
};

/** Undefined: there is none, or none that can be used, which is logged. */
export const readKeptPlan = (kept: KeptSection, logger: Logger): NodePlan | undefined => {
  const found = kept.read();
  return (
    found &&
    parseKeptPlan(found, (reason) => logger.warn({ reason }, 'the kept plan is unusable; waiting for the API server'))
  );
};

export const keepPlan = (kept: KeptSection, plan: NodePlan): void => kept.write({ version: VERSION, plan });
