import { describeLinks } from './links.ts';
import type { LabLayout } from '../layout/layout.ts';
import type { Pod } from './test-pod.ts';

/** What is tried, several at a time, and how the outcome is told. */

/** One thing that was tried. `from` and `to` are pods, nodes or services. */
export interface Check {
  readonly from: string;
  readonly to: string;
  readonly what: string;
  readonly ok: boolean;
  readonly error?: string;
  readonly rttMicros?: number;
}

/** What a probe's matrix is to try, and how (tools/assets/probe/matrix.go). */
export interface Target {
  readonly name: string;
  readonly address: string;
  readonly port: number;
  readonly checks: readonly ('icmp' | 'udp' | 'tcp' | 'connect')[];
}

const IN_PARALLEL = 3;

/** Maps with at most {@link IN_PARALLEL} at work: each check is a process on a small machine. */
export const mapLimited = async <T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> => {
  const results: R[] = [];
  const queue = [...items.entries()];
  await Promise.all(
    Array.from({ length: IN_PARALLEL }, async () => {
      for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await work(next[1]);
    }),
  );
  return results;
};

export const attempt = async (check: Omit<Check, 'ok'>, work: () => Promise<string | undefined>): Promise<Check> => {
  try {
    const problem = await work();
    return problem === undefined ? { ...check, ok: true } : { ...check, ok: false, error: problem };
  } catch (error) {
    return { ...check, ok: false, error: (error as Error).message };
  }
};

interface ProbeResult {
  name: string;
  check: string;
  ok: boolean;
  error?: string;
  rttMicros: number;
}

/**
 * Runs the probe's matrix and turns its answer into checks; when it cannot run at all, every target failed. Targets with
 * a failure are tried again, up to `rounds` times in all.
 */
export const matrixChecks = async (
  { from, rounds }: { readonly from: string; readonly rounds: number },
  targets: readonly Target[],
  runProbe: (input: string) => Promise<string>,
): Promise<Check[]> => {
  try {
    let results: ProbeResult[] = [];
    for (let left = rounds, wanted = targets; left > 0 && wanted.length > 0; left--) {
      const tried = JSON.parse(await runProbe(JSON.stringify(wanted))) as ProbeResult[];
      const names = new Set(wanted.map(({ name }) => name));
      results = [...results.filter(({ name }) => !names.has(name)), ...tried];
      wanted = wanted.filter(({ name }) => tried.some((result) => result.name === name && !result.ok));
    }
    return results.map(({ name, check, ok, error, rttMicros }) => ({
      from,
      to: name,
      what: check,
      ok,
      rttMicros,
      ...(error ? { error } : {}),
    }));
  } catch (error) {
    return targets.map(({ name }) => ({ from, to: name, what: 'matrix', ok: false, error: (error as Error).message }));
  }
};

/** The pairs of nodes as a table, rows send and columns answer: a dot where everything passed, the number of failures otherwise. */
export const reachabilityTable = (layout: LabLayout, pods: readonly Pod[], checks: readonly Check[]): string => {
  const nodeOf = (name: string): string | undefined =>
    pods.find((pod) => pod.name === name)?.node ?? layout.nodes.find((node) => node.name === name)?.name;
  const names = layout.nodes.map(({ name }) => name);
  const width = Math.max(...names.map((name) => name.length)) + 1;
  const cell = (from: string, to: string): string => {
    const between = checks.filter((check) => nodeOf(check.from) === from && nodeOf(check.to) === to);
    const failed = between.filter(({ ok }) => !ok).length;
    return between.length === 0 ? ' ' : failed === 0 ? '·' : `${failed}!`;
  };
  const row = (label: string, cells: readonly string[]): string =>
    label.padEnd(width) + cells.map((text) => text.padStart(width)).join('');
  return [
    row('', names),
    ...names.map((from) =>
      row(
        from,
        names.map((to) => cell(from, to)),
      ),
    ),
  ].join('\n');
};

/** Runs checks and prints how many there were. */
export const timed = async (what: string, work: () => Promise<Check[]>): Promise<Check[]> => {
  const start = Date.now();
  const checks = await work();
  const failed = checks.filter(({ ok }) => !ok).length;
  console.log(
    `  ${what.padEnd(44)}${String(checks.length).padStart(6)} checks${String(failed).padStart(5)} failed${((Date.now() - start) / 1000).toFixed(1).padStart(7)} s`,
  );
  return checks;
};

export const printResults = (layout: LabLayout, checks: readonly Check[], able: ReadonlySet<string>): void => {
  for (const check of checks.filter(({ what, ok }) => ok && /^(lan )?stream/.test(what)))
    console.log(`  ${check.what}: ${check.from} -> ${check.to}`);
  for (const line of describeLinks(layout, able)) console.log(`  links ${line}`);
  const failures = checks.filter(({ ok }) => !ok);
  for (const { from, to, what, error } of failures.slice(0, 40))
    console.log(`  FAILED ${from} -> ${to} ${what}: ${error?.split('\n').at(-1)}`);
  if (failures.length > 40) console.log(`  … and ${failures.length - 40} more`);
};
