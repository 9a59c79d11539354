/**
 * What the program of a port takes for a frame to a known MAC address among 10 and among 5,000 entries, in nanoseconds of turns that follow
 * each other. For tools/bench l2-scale; prints them as JSON.
 */
import { ethernet, TYPE } from './l2-frames.ts';
import { type L2Switch, loadSwitch, NEAR, NETWORK, OWN, populate, REDIRECT, SEGMENT } from './l2-switch.ts';
import { ip } from './packets.ts';

const RUNS = 500_000;
const FAR_NODE = 'fd00:cafe:0:3::';
const rounds = Number(process.argv[2]);

/** An address as one of the node's own endpoints has it, but for these bytes. */
const macOf = (net: number, at: number): string =>
  `02:01:00:${[net, at >> 8, at & 0xff].map((byte) => byte.toString(16).padStart(2, '0')).join(':')}`;

/** So many Networks, and endpoints of each at another node; those of `populate` are of the first. */
const switchWith = (networks: number, endpoints: number): L2Switch => {
  const l2 = loadSwitch();
  populate(l2);
  for (let net = 0; net < networks; net++) {
    const network = NETWORK + net;
    l2.networks.set(network, { mtu: 1366 });
    for (let at = net === 0 ? [...l2.fdb.entries()].length : 0; at < endpoints; at++) {
      const mac = macOf(net, at);
      l2.fdb.set({ network, mac }, { segment: SEGMENT, sequence: 0n, locator: FAR_NODE });
      l2.neighbors.set({ network, address: `10.9.${at >> 8}.${at & 0xff}` }, { mac });
    }
  }
  return l2;
};

/** A frame to a port of this node stays as it is: one for another node would be in SRv6 after the first of the runs. */
const flow = { source: OWN.ipv4, destination: NEAR.ipv4 };
const data = ethernet({ from: OWN.mac, to: NEAR.mac }, TYPE.ipv4, ip(flow));

const runNanoseconds = (l2: L2Switch): number => {
  const { returnValue, nanoseconds } = l2.object.program('unbounded_l2_port').testRun({ data, repeat: RUNS });
  if (returnValue !== REDIRECT) throw new Error(`the frame was not forwarded: ${returnValue}`);
  return nanoseconds;
};

using few = switchWith(1, 10);
using many = switchWith(100, 50);
const entries = [few, many].map(({ fdb }) => [...fdb.entries()].length);
for (const l2 of [few, many]) runNanoseconds(l2);
/** Who goes first changes: a machine that becomes slower does so for both. */
const turns = Array.from({ length: rounds }, (_, round) => {
  if (round % 2 === 1) {
    const ours = runNanoseconds(many);
    return { ours, theirs: runNanoseconds(few) };
  }
  const theirs = runNanoseconds(few);
  return { ours: runNanoseconds(many), theirs };
});
for (const l2 of [few, many]) {
  const counts = JSON.stringify(l2.counts());
  if (counts !== JSON.stringify({ forwarded: RUNS * (rounds + 1) }))
    throw new Error(`not all were forwarded: ${counts}`);
}
process.stdout.write(`${JSON.stringify({ entries, turns })}\n`);
