/** Variables of Go's collector of garbage (https://go.dev/doc/gc-guide), for programs that tests start. */

/** Helm, kubectl and promtool end before a collection would pay: without one they take a fifth to a third less of the processor. */
export const COMMAND_MEMORY = { GOGC: 'off', GOMEMLIMIT: '512MiB' } as const;

/**
 * The collector took a quarter of an API server's processor time, most of it while it starts. It runs less often here, as long as there is
 * less than the limit; four specs run at a time.
 */
export const SERVER_MEMORY = { GOGC: '400', GOMEMLIMIT: '768MiB' } as const;
