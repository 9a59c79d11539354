import type { ApiServer } from './api-server.ts';
import type { Manifest } from './chart.ts';

/** What an API server refuses of many renderings, in few requests: each object once, however many renderings have it. */

const keyOf = ({ apiVersion, kind, metadata: { namespace = '', name } }: Manifest): string =>
  [apiVersion, kind, namespace, name].join(' ');

/** Lists in which each name occurs once: objects of one name that differ are in different lists. */
const rounds = (objects: Iterable<Manifest>): Manifest[][] => {
  const lists: Manifest[][] = [];
  const used = new Map<string, number>();
  for (const object of objects) {
    const round = used.get(keyOf(object)) ?? 0;
    used.set(keyOf(object), round + 1);
    (lists[round] ??= []).push(object);
  }
  return lists;
};

/** By the JSON of an object what the API server says against it. */
export type Refusals = ReadonlyMap<string, string>;
const ask = (api: ApiServer, objects: readonly Manifest[]): (readonly [string, string])[] => {
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  try {
    const answers = api.apply(list, '--server-side', '--dry-run=server').trim().split('\n');
    if (answers.length === objects.length) return [];
    throw new Error(`${objects.length} objects must have as many answers, not ${answers.join('\n')}`);
  } catch (error) {
    if (objects.length === 1) return [[JSON.stringify(objects[0]), (error as Error).message]];
    const half = objects.length >> 1;
    return [...ask(api, objects.slice(0, half)), ...ask(api, objects.slice(half))];
  }
};
/** Asks without making anything. */
export const refusalsOf = (api: ApiServer, renderings: Iterable<readonly Manifest[]>): Refusals => {
  const distinct = new Map([...renderings].flat().map((object) => [JSON.stringify(object), object]));
  return new Map(rounds(distinct.values()).flatMap((objects) => ask(api, objects)));
};

/** Those of a rendering. */
export const refusedOf = (refusals: Refusals, objects: readonly Manifest[]): string[] =>
  objects.flatMap((object) => refusals.get(JSON.stringify(object)) ?? []);
