import { namespaceOf } from '../layout/layout.ts';
import { inNamespace, runAsync } from '../machine/command.ts';
import { binary } from '../machine/paths.ts';

/** The probe (tools/assets/probe), which answers in every test pod and asks from where it is run. */

const EXEC_DEADLINE_MS = 90_000;

/** @param program what runs the probe, in a pod or elsewhere */
export const runProbe = (program: readonly string[], args: readonly string[], input?: string): Promise<string> =>
  runAsync([...program, ...args], {
    timeoutMs: EXEC_DEADLINE_MS,
    ...(input === undefined ? {} : { input }),
  });

/** Runs the probe in a node's own network namespace. */
export const inNodeNetwork = (node: string, args: readonly string[], input?: string): Promise<string> =>
  runProbe([...inNamespace(namespaceOf(node)), binary('probe')], args, input);
