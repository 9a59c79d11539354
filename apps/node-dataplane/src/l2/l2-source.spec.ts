import { endpoint, fdbEntry, network } from '@unbounded/l2/testdata';
import { beforeEach, describe, expect, test } from 'vitest';
import type { SectionContext } from '../section.port.ts';
import { createL2Source, type L2Source } from './l2-source.ts';

interface Opened {
  readonly filters: Readonly<Record<string, { readonly labelSelector?: string; readonly fieldSelector?: string }>>;
  objects: object | undefined;
  isStopped: boolean;
}

const [lan, office] = [network('lan'), network('office')];
const own = endpoint(1, 'n1');
const other = endpoint(2, 'n2');
const inOffice = endpoint(3, 'n1', { network: 'office' });

let opened: Opened[];
let source: L2Source;
beforeEach(() => {
  opened = [];
  const openInputs = (_kinds: object, filters: Opened['filters'] = {}) => {
    const one: Opened = { filters, objects: undefined, isStopped: false };
    opened.push(one);
    return {
      snapshot: () => one.objects && { objects: one.objects, version: one.objects }, // another with each change
      stop: async () => void (one.isStopped = true),
    };
  };
  source = createL2Source({ nodeName: 'n1', openInputs } as unknown as SectionContext);
});

const selectors = (): (string | undefined)[] =>
  opened.slice(1).map(({ filters }) => filters['neighbors']?.labelSelector);
const running = (): number => opened.filter(({ isStopped }) => !isStopped).length;

describe('the objects of a node', () => {
  test('are those of its own endpoints, by the API server’s filter, and nothing while these are not known', () => {
    expect(source.snapshot()).toBeUndefined();
    expect(opened.map(({ filters }) => filters['endpoints']?.fieldSelector)).toEqual(['spec.node=n1']);
    opened[0]!.objects = { networks: [lan], endpoints: [] };
    expect(source.snapshot()).toEqual({ networks: [lan], endpoints: [], fdbEntries: [], neighbors: [] });
    expect(opened).toHaveLength(1);
  });

  test('are of the Networks that it hosts alone, by their label', () => {
    opened[0]!.objects = { networks: [lan, office], endpoints: [own] };
    expect(source.snapshot()).toBeUndefined();
    expect(selectors()).toEqual(['net.unbounded-cloud.io/network in (lan)']);
    opened[1]!.objects = { endpoints: [own, other], fdbEntries: [fdbEntry(other)], neighbors: [] };
    const seen = source.snapshot()!;
    expect(seen.endpoints.map(({ metadata }) => metadata.name).sort()).toEqual(['e1', 'e2']);
    expect(seen.fdbEntries).toHaveLength(1);
    source.snapshot();
    expect(opened).toHaveLength(2);
  });

  test('stay as they were until those of another selection are read', () => {
    opened[0]!.objects = { networks: [lan, office], endpoints: [own] };
    source.snapshot();
    opened[1]!.objects = { endpoints: [own, other], fdbEntries: [], neighbors: [] };
    source.snapshot();
    opened[0]!.objects = { networks: [lan, office], endpoints: [own, inOffice] };
    expect(source.snapshot()!.endpoints).toHaveLength(3); // its own is known
    expect(selectors()[1]).toBe('net.unbounded-cloud.io/network in (lan,office)');
    expect(running()).toBe(3);
    opened[2]!.objects = { endpoints: [own, other, inOffice], fdbEntries: [], neighbors: [] };
    expect(source.snapshot()!.endpoints).toHaveLength(3);
    expect(opened[1]!.isStopped).toBe(true);
    expect(running()).toBe(2);
  });

  test('are followed no more when the last endpoint is gone', () => {
    opened[0]!.objects = { networks: [lan], endpoints: [own] };
    source.snapshot();
    opened[0]!.objects = { networks: [lan], endpoints: [] };
    expect(source.snapshot()!.endpoints).toEqual([]);
    expect(running()).toBe(1);
  });

  test('are the same object while nothing changes', () => {
    opened[0]!.objects = { networks: [lan], endpoints: [own] };
    source.snapshot();
    opened[1]!.objects = { endpoints: [own, other], fdbEntries: [], neighbors: [] };
    const seen = source.snapshot();
    expect(source.snapshot()).toBe(seen);
    opened[1]!.objects = { endpoints: [own], fdbEntries: [], neighbors: [] };
    expect(source.snapshot()!.endpoints).toHaveLength(1);
  });

  test('of its own are what it has read of them itself', () => {
    const renewed = endpoint(1, 'n1', { addresses: ['192.0.2.99'] });
    opened[0]!.objects = { networks: [lan], endpoints: [renewed] };
    source.snapshot();
    opened[1]!.objects = { endpoints: [own, endpoint(9, 'n1'), other], fdbEntries: [], neighbors: [] };
    const { endpoints } = source.snapshot()!;
    expect(endpoints.map(({ spec }) => spec.addresses[0]!).sort()).toEqual(['192.0.2.2', '192.0.2.99']);
  });
});
