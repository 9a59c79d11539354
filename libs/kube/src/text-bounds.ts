/**
 * How long texts are that our programs write, in characters. What is longer is cut before it is sent. The chart's policies have the
 * same numbers for our accounts, so that a stolen token writes no more; libs/testing compares them.
 */

/** As the API server bounds them in events.k8s.io/v1; in core/v1 it does not. */
export const EVENT_BOUNDS = { reason: 128, action: 128, reportingInstance: 128, note: 1024 } as const;

/** The API server bounds none of a Node's. */
export const NODE_CONDITION_BOUNDS = { type: 64, reason: 128, message: 4096 } as const;
/** As the schemas of our own kinds bound them: a text that is longer would have the whole status refused. */
export const CONDITION_BOUNDS = { reason: 1024, message: 32_768 } as const;
/** Conditions of a Node that are the agent's, by their prefix. */
export const MOST_NODE_CONDITIONS = 16;

/** The texts that have a bound, cut to it. */
export const cutTexts = <T extends object>(object: T, bounds: Partial<Record<keyof T, number>>): T => {
  const cut = Object.entries(bounds as Record<string, number>).flatMap(([name, most]) => {
    const text = (object as Record<string, unknown>)[name];
    return typeof text === 'string' && text.length > most ? [[name, text.slice(0, most)] as const] : [];
  });
  return cut.length === 0 ? object : { ...object, ...Object.fromEntries(cut) };
};
