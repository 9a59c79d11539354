import { type Network, type NetworkEndpoint, PROTECTION_FINALIZER } from '@unbounded/crds';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { clusterOf, createdEndpoint, timeOf } from './cluster.testdata.ts';
import { planNetworks } from './index.ts';
import { network } from './testdata.ts';

/** A cluster in which people, agents and the controller do things in any order; the controller may end in the middle of its writes. */
class Cluster {
  readonly networks = new Map<string, Network>();
  readonly endpoints = new Map<number, NetworkEndpoint>();
  /** By endpoint: the number that the frames of its Network bear. */
  readonly borne = new Map<number, number>();
  #created = 0;
  #endpoints = 0;

  create(name: string): void {
    if (this.networks.has(name)) return;
    // Two in each second, as seen by their times.
    const metadata = { name, uid: `u${++this.#created}`, creationTimestamp: timeOf(this.#created >> 1) };
    this.networks.set(name, { ...network(name, {}, {}), metadata });
  }

  attach(name: string): void {
    const found = this.networks.get(name);
    if (!found || found.metadata.deletionTimestamp !== undefined) return;
    const number = ++this.#endpoints;
    this.endpoints.set(number, createdEndpoint(number, 'n1', { network: name }));
    this.#bear();
  }

  detach(at: number): void {
    const number = [...this.endpoints.keys()][at];
    if (number === undefined) return;
    this.endpoints.delete(number);
    this.borne.delete(number);
  }

  delete(name: string): void {
    const found = this.networks.get(name);
    if (!found) return;
    if ((found.metadata.finalizers ?? []).length === 0) this.networks.delete(name);
    else this.networks.set(name, { ...found, metadata: { ...found.metadata, deletionTimestamp: timeOf(99) } });
  }

  /** One pass, of whose writes the first ones are done. The plan is made from what the API server has, as for a new leader. */
  pass(writes: number): void {
    const plans = planNetworks(clusterOf([...this.networks.values()], [...this.endpoints.values()]));
    for (const { network: before, isProtected, fields } of plans.slice(0, writes)) {
      const { name, deletionTimestamp } = before.metadata;
      if (!isProtected && deletionTimestamp !== undefined) this.networks.delete(name);
      else if (!before.metadata.finalizers)
        this.networks.set(name, { ...before, metadata: { ...before.metadata, finalizers: [PROTECTION_FINALIZER] } });
      else this.networks.set(name, { ...before, status: { ...fields } });
    }
    this.#bear();
  }

  #bear(): void {
    for (const [key, { spec }] of this.endpoints) {
      const number = this.networks.get(spec.network)?.status?.number;
      if (number !== undefined && !this.borne.has(key)) this.borne.set(key, number);
    }
  }
}

const name = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.oneof(
  name.map((one) => (cluster: Cluster) => cluster.create(one)),
  name.map((one) => (cluster: Cluster) => cluster.attach(one)),
  fc.nat(5).map((at) => (cluster: Cluster) => cluster.detach(at)),
  name.map((one) => (cluster: Cluster) => cluster.delete(one)),
  { arbitrary: fc.integer({ min: 1, max: 5 }).map((writes) => (cluster: Cluster) => cluster.pass(writes)), weight: 3 },
);

it('numbers are unique and stable under any order of creation, deletion and restart, and nobody else’s while an endpoint stands', () => {
  let [reused, kept] = [0, 0];
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      const cluster = new Cluster();
      /** By UID. */
      const before = new Map<string, number>();
      for (const act of steps) {
        act(cluster);
        const numbers = [...cluster.networks.values()].flatMap(({ status }) => status?.number ?? []);
        expect(new Set(numbers).size).toBe(numbers.length);
        for (const { metadata, status } of cluster.networks.values()) {
          const known = before.get(metadata.uid!);
          if (known !== undefined) expect(status?.number).toBe(known);
          if (status?.number !== undefined) before.set(metadata.uid!, status.number);
        }
        for (const [key, number] of cluster.borne) {
          const owner = [...cluster.networks.values()].find(({ status }) => status?.number === number);
          expect(owner?.metadata.name).toBe(cluster.endpoints.get(key)!.spec.network);
          if (owner?.metadata.deletionTimestamp !== undefined) kept++;
        }
        if (before.size > new Set(before.values()).size) reused++;
      }
    }),
    { numRuns: 300 },
  );
  // The runs did reach what the test is about.
  expect([reused > 0, kept > 0]).toEqual([true, true]);
});
