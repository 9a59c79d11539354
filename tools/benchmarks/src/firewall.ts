import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { type Round, row, ROUNDS } from './rounds.ts';

/** What a node's nftables table costs each packet that it forwards, next to none. In namespaces of its own. See ../README.md. */

const pathOf = (file: string): string => new URL(`../../../${file}`, import.meta.url).pathname;
const SCENARIO = pathOf('apps/node-dataplane/src/connectivity/kernel/firewall-cost.scenario.ts');

const folder = mkdtempSync(join(tmpdir(), 'bench-'));
try {
  const sender = join(folder, 'datagrams');
  execFileSync('gcc', ['-O2', '-Wall', '-Werror', pathOf('tools/benchmarks/ref/datagrams.c'), '-o', sender]);
  for (const role of ['worker', 'gateway']) {
    const argv = [...nodeCommand.slice(1), SCENARIO, role, sender, String(ROUNDS)];
    const turns = JSON.parse(execFileSync(nodeCommand[0], argv, { encoding: 'utf8' })) as Record<string, Round[]>;
    console.log(`\n| ${role}: a datagram (ns) | with the table | without | ratio | of rounds |\n|---|---|---|---|---|`);
    for (const [name, rounds] of Object.entries(turns)) console.log(row(name, rounds));
  }
} finally {
  rmSync(folder, { recursive: true });
}
