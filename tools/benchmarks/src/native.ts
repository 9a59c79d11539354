import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type Endpoint, endpointV4, lpmKeyV4 } from '@unbounded/bpf-maps';
import { loadObject } from '@unbounded/libbpf-ts';
import { createNetns, createRouteSocket } from '@unbounded/netlink';
import { type Round, ROUNDS, row } from './rounds.ts';

/** Compares the native layer with C and iproute2, in turns on the same machine. See ../README.md. */

const ENTRIES = 10_000;
const root = new URL('../../../', import.meta.url).pathname;

const timed = (work: () => void): number => {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1000 / ENTRIES;
};

const hop: Endpoint = { remote: '192.0.2.7', vni: 1, ifindex: 12, protocol: 'vxlan', setKey: true, healthy: true };
const entries = Array.from(
  { length: ENTRIES },
  (_, index) => [`100.${64 + (index >> 8)}.${index & 255}.0/24`, hop] as const,
);

const MAP_ROWS = ['endpoints, batch update', 'endpoints, one by one', 'endpoints, list'] as const;

const mapRound = (program: string): Round[] => {
  const theirs = execFileSync(program, { encoding: 'utf8' }).trim().split(' ').map(Number);
  using object = loadObject(readFileSync(join(root, 'bpf/build/unbounded_encap.bpf.o')), { name: 'bench' });
  using map = object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4);
  const ours = [
    timed(() => map.setMany(entries)),
    timed(() => {
      for (const [key, value] of entries) map.set(key, value);
    }),
    timed(() => {
      let count = 0;
      for (const _ of map.entries()) count++;
      if (count !== ENTRIES) throw new Error(`the map lists ${count} entries of ${ENTRIES}`);
    }),
  ];
  return ours.map((time, index) => ({ ours: time, theirs: theirs[index] ?? 0 }));
};

const routeRound = async (folder: string): Promise<Round> => {
  using ns = createNetns();
  await using net = createRouteSocket({ netnsFd: ns.fd });
  const { index: link } = await net.links.create({ name: 'x0', kind: { kind: 'ifb' }, up: true });
  const destinations = Array.from(
    { length: ENTRIES },
    (_, index) => `100.${64 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}/32`,
  );
  const batch = join(folder, 'routes');
  writeFileSync(batch, destinations.map((dst) => `route add ${dst} dev x0 table 500`).join('\n'));
  const theirs = timed(() => execFileSync('nsenter', [`--net=${ns.path}`, 'ip', '-batch', batch]));
  const start = process.hrtime.bigint();
  const results = await net.routes.apply(
    destinations.map((dst) => ({ op: 'create', value: { dst, link, table: 501 } })),
  );
  const ours = Number(process.hrtime.bigint() - start) / 1000 / ENTRIES;
  const failed = results.find(({ ok }) => !ok);
  if (failed && !failed.ok) throw failed.error;
  return { ours, theirs };
};

const main = async (): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  try {
    const program = join(folder, 'maps');
    execFileSync('gcc', ['-O2', '-Wall', '-Werror', join(root, 'tools/benchmarks/ref/maps.c'), '-o', program, '-lbpf']);
    execFileSync(join(root, 'bpf/build.sh'));
    const maps: Round[][] = MAP_ROWS.map(() => []);
    const routes: Round[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const [mapTimes, routeTimes] = [mapRound(program), await routeRound(folder)];
      if (round === 0) continue; // warms up
      mapTimes.forEach((time, index) => maps[index]?.push(time));
      routes.push(routeTimes);
    }
    console.log(
      `Medians of ${ROUNDS} interleaved rounds, ${ENTRIES} entries, µs per entry; the ratio is the median of the rounds' ratios.\n`,
    );
    console.log('| | ours | C / ip -batch | ratio | least - greatest | target |\n|---|---|---|---|---|---|');
    MAP_ROWS.forEach((name, index) => console.log(row(name, maps[index] ?? [], index === 0 ? '1.15' : '-')));
    console.log(row('10,000 routes', routes, '0.55'));
  } finally {
    rmSync(folder, { recursive: true });
  }
};

await main();
