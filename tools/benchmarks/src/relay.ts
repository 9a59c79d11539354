import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { idleKiBPerConnection } from './relay-idle.ts';
import {
  compile,
  type Load,
  type LoadResult,
  runLoad,
  startGoRelay,
  startRelay,
  startSplice,
  type Subject,
} from './relay-subjects.ts';
import { median } from './rounds.ts';

/**
 * The relay next to `splice`, which passes bytes on without looking at them, next to a relay in Go, and next to any relay
 * of the documented protocol:
 * `tools/bench relay [--against HOST:PORT] [--pairs 1,10,100] [--seconds 2] [--only load,closed,idle]`. See ../README.md.
 */
const { values } = parseArgs({
  options: {
    against: { type: 'string' },
    pairs: { type: 'string', default: '1,10,100' },
    seconds: { type: 'string', default: '2' },
    only: { type: 'string', default: 'load,closed,idle' },
  },
});

const ROUNDS = Number(process.env['ROUNDS'] ?? 5);
const PAYLOAD_BYTES = 1400;
const IDLE = [1000, 10_000];
/** Messages of a pair on their way in a closed loop. */
const WINDOW = 16;
/** A port for each process: the one before may not have ended yet. */
let port = 24_780;
const root = new URL('../../../', import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), 'bench-relay-'));

const reference = (): Subject[] => {
  if (values.against === undefined) return [];
  const [host = '', digits = ''] = values.against.split(':');
  if (!/^[0-9.]+$/.test(host) || !/^[0-9]+$/.test(digits))
    throw new Error(`--against ${values.against}: must be an IPv4 address and a port, like 127.0.0.1:3478`);
  return [{ name: values.against, host, port: Number(digits), pid: undefined, [Symbol.dispose]: () => {} }];
};

const subjects = async (): Promise<Subject[]> => [
  await startSplice(folder, port++),
  await startRelay(port++),
  await startGoRelay(port++),
  ...reference(),
];

const number = (value: number, digits = 0): string => (Number.isNaN(value) ? '-' : value.toFixed(digits));
const of = (results: readonly LoadResult[], field: keyof LoadResult): number => median(results.map((it) => it[field]));
/** To another subject's in the same rounds. */
const ratio = (results: readonly LoadResult[], others: readonly LoadResult[], field: keyof LoadResult): number =>
  median(results.map((result, round) => result[field] / (others[round]?.[field] ?? Number.NaN)));

/** Every subject in turn, round after round; a fresh process each time. */
const rounds = async (load: Omit<Load, 'payloadBytes'>, only?: string): Promise<Map<string, LoadResult[]>> => {
  const results = new Map<string, LoadResult[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const subject of await subjects()) {
      using it = subject;
      if (only !== undefined && it.name !== only) continue;
      const result = runLoad(folder, it, { ...load, payloadBytes: PAYLOAD_BYTES });
      results.set(it.name, [...(results.get(it.name) ?? []), result]);
    }
  return results;
};

const benchLoad = async (pairs: number): Promise<void> => {
  const seconds = Number(values.seconds);
  const full = await rounds({ pairs, seconds, rate: 0, timed: false });
  const limit = full.get('splice') ?? [];
  for (const [name, results] of full) {
    const perSecond = of(results, 'perSecond');
    const share = ratio(results, limit, 'perSecond');
    const half = (await rounds({ pairs, seconds, rate: perSecond / 2, timed: true }, name)).get(name) ?? [];
    const twice = (await rounds({ pairs, seconds, rate: perSecond * 2, timed: false }, name)).get(name) ?? [];
    const cells = [
      String(pairs),
      name,
      number(perSecond / 1000),
      number(share, 2),
      number(of(results, 'cpuPerMillion'), 2),
      number(of(half, 'p50us')),
      number(of(half, 'p99us')),
      `${number(of(results, 'loss') * 100, 3)} %`,
      `${number(of(twice, 'loss') * 100, 3)} %`,
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
};

/** No subject loses anything or has a queue here, so its processor time is that of its work alone. */
const benchClosed = async (pairs: number): Promise<void> => {
  const all = await rounds({ pairs, seconds: Number(values.seconds), rate: 0, timed: true, window: WINDOW });
  const go = all.get('go') ?? [];
  for (const [name, results] of all) {
    const cells = [
      String(pairs),
      name,
      number(of(results, 'perSecond') / 1000),
      number(ratio(results, go, 'perSecond'), 2),
      number(of(results, 'cpuPerMillion'), 2),
      number(ratio(results, go, 'cpuPerMillion'), 2),
      number(of(results, 'p50us')),
      number(of(results, 'p99us')),
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
};

const benchIdle = async (): Promise<void> => {
  console.log('\n| idle connections | KiB each |\n|---|---|');
  for (const connections of IDLE) {
    const each: number[] = [];
    for (let round = 0; round < Math.min(3, ROUNDS); round++) {
      using relay = await startRelay(port++);
      each.push(await idleKiBPerConnection(relay, connections));
    }
    console.log(`| ${connections} | ${number(median(each), 1)} (${each.map((one) => number(one, 1)).join(', ')}) |`);
  }
};

try {
  compile(folder);
  execFileSync(join(root, 'tools/build'), ['relay'], { stdio: 'inherit' });
  console.log(`Medians of ${ROUNDS} interleaved rounds of ${values.seconds} s, ${PAYLOAD_BYTES} bytes of payload.\n`);
  if (values.only.includes('load')) {
    console.log(
      '| pairs | | 1,000 messages/s | of splice | CPU s per million | p50 µs at half | p99 µs at half | loss at full | loss at twice |',
    );
    console.log('|---|---|---|---|---|---|---|---|---|');
    for (const pairs of values.pairs.split(',')) await benchLoad(Number(pairs));
  }
  if (values.only.includes('closed')) {
    console.log(`\n${WINDOW} messages of each pair on their way, each written by itself:\n`);
    console.log('| pairs | | 1,000 messages/s | of go | CPU s per million | of go | p50 µs | p99 µs |');
    console.log('|---|---|---|---|---|---|---|---|');
    for (const pairs of values.pairs.split(',')) await benchClosed(Number(pairs));
  }
  if (values.only.includes('idle')) await benchIdle();
} finally {
  rmSync(folder, { recursive: true });
}
