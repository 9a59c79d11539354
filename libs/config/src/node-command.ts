/**
 * Options of V8 that every start of Node has: a program that starts another (NODE_OPTIONS refuses options of V8), tools/node, the image,
 * the chart, systemd's unit. tools/repo/src/node-starts.spec.ts holds that none is without, and that the pinned Node knows them.
 *
 * On processors with protection keys (pku in /proc/cpuinfo) V8 guards the pages of compiled code, and loses count of them when threads
 * come and go: `Check failed: jit_page.has_value()`, and the process aborts (nodejs/node#64500).
 */
export const V8_OPTIONS = ['--no-memory-protection-keys'] as const;

/**
 * V8 collects garbage on the thread whose it is. A program with a real-time thread is started with it: V8's own threads are of normal
 * priority, and the collection of a real-time thread spins until they have done their part (Scavenger::ScavengeObject, seen with perf in
 * Node 24.21). They never get a processor where real-time threads hold all of them, until the kernel interrupts these after 0.95 s.
 */
export const REALTIME_V8_OPTION = '--single-threaded-gc';

/** Options of V8 that the node agent is started with. */
export const AGENT_V8_OPTIONS = [...V8_OPTIONS, REALTIME_V8_OPTION] as const;

/** Our own Node and the options that it is started with; options of the caller, a program and its arguments follow. */
export const nodeCommand: readonly [program: string, ...options: string[]] = [process.execPath, ...V8_OPTIONS];
/** The same for the node agent. */
export const agentCommand: readonly [program: string, ...options: string[]] = [process.execPath, ...AGENT_V8_OPTIONS];
