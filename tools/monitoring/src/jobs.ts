/**
 * The label `job` of our targets: a prefix and the program. The chart's PodMonitor and docs/monitoring.md set it. Names such as `up`
 * and `workqueue_depth` are not ours alone, so every expression with one of them selects our jobs.
 */
const PREFIX = 'unbounded-';

export const AGENT_JOB = `${PREFIX}node-dataplane`;
export const TAILNET_AGENT_JOB = `${PREFIX}tailnet`;
/** A matcher for all of them. */
export const OUR_JOBS = `job=~"${PREFIX}.+"`;
/** One of these is enough at a time: the others wait for its lease, or serve the same. */
export const REPLICATED_JOBS = `job=~"${PREFIX}.+",job!~"${AGENT_JOB}|${TAILNET_AGENT_JOB}"`;
