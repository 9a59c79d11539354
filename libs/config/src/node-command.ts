/**
 * Options of V8 that every start of Node has: a program that starts another (NODE_OPTIONS refuses options of V8), tools/node, the image,
 * the chart, systemd's unit. tools/repo/src/node-starts.spec.ts holds that none is without, and that the pinned Node knows them.
 *
 * On processors with protection keys (pku in /proc/cpuinfo) V8 guards the pages of compiled code, and loses count of them when threads
 * come and go: `Check failed: jit_page.has_value()`, and the process aborts (nodejs/node#64500).
 */
export const V8_OPTIONS = ['--no-memory-protection-keys'] as const;

/** Our own Node and the options that it is started with; options of the caller, a program and its arguments follow. */
export const nodeCommand: readonly [program: string, ...options: string[]] = [process.execPath, ...V8_OPTIONS];
