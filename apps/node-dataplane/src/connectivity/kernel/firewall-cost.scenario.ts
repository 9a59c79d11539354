import { execFileSync } from 'node:child_process';
import { NFT_TABLE } from '@unbounded/config/ownership';
import { openUdp } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { printReport } from '../../printed-report.testdata.ts';
import { openBoundaryLab } from './boundary-lab.testdata.ts';
import { addressOf, FAMILIES, PORT } from './boundary-network.testdata.ts';

/**
 * What connectivity's nftables table costs a datagram that a node forwards, between its pod and the place of a tunnel: ROLE SENDER ROUNDS.
 * For tools/bench firewall; prints nanoseconds as JSON, of each way those with the table and, in turns with it, those without.
 */

const [role, sender, rounds] = process.argv.slice(2) as ['worker' | 'gateway', string, string];
const [TURNS, DATAGRAMS] = [8, 20_000];
const PROCESSOR = '0';

const lab = await openBoundaryLab({ role, protocol: 'VXLAN', dataplane: 'ebpf' });
const nft = createNftables({ netnsFd: lab.ns.node.fd });
// Nobody reads there: what is sent ends in a full buffer, and no error comes back.
for (const place of ['pod', 'far'] as const)
  for (const address of ['0.0.0.0', '::']) openUdp({ address, port: PORT, netnsFd: lab.ns[place].fd });
const send = (from: 'pod' | 'far', to: string): number => {
  const argv = ['-c', PROCESSOR, 'nsenter', `--net=${lab.ns[from].path}`, sender, to, String(PORT), String(DATAGRAMS)];
  return Number(execFileSync('taskset', argv, { encoding: 'utf8' }));
};
const ways = FAMILIES.flatMap((family) => [
  [`IPv${family}, out of a tunnel to a pod`, () => send('far', lab.own.pod[family])] as const,
  [`IPv${family}, from a pod into a tunnel`, () => send('pod', addressOf('farPod', family))] as const,
]);

/** The least of some turns is what a datagram takes when nothing else has the processor. */
const leastOf = (all: readonly (readonly number[])[]): number[] =>
  ways.map((_, index) => Math.min(...all.map((times) => times[index]!)));

const rows: Record<string, { ours: number; theirs: number }[]> = {};
for (let round = 0; round < Number(rounds); round++) {
  const [ours, theirs]: [number[][], number[][]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++) {
    await lab.apply(lab.plan);
    ours.push(ways.map(([, measure]) => measure()));
    await nft.deleteTable('inet', NFT_TABLE);
    theirs.push(ways.map(([, measure]) => measure()));
  }
  const least = { ours: leastOf(ours), theirs: leastOf(theirs) };
  for (const [index, [name]] of ways.entries())
    (rows[name] ??= []).push({ ours: least.ours[index]!, theirs: least.theirs[index]! });
}
await nft[Symbol.asyncDispose]();
lab.close();
await printReport(rows);
