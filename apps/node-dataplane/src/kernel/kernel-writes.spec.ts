import type { RouteSocket } from '@unbounded/netlink';
import type { Nftables } from '@unbounded/nftables';
import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createKernelWrites } from './kernel-writes.ts';

const written = (text: string): string[] =>
  text.split('\n').filter((line) => line.startsWith('unbounded_agent_kernel_writes_total'));

class Recorder {
  readonly #calls: string[] = [];
  readonly info = { maxEntries: 4 };
  calls = (): readonly string[] => this.#calls;
  list(): void {
    this.#calls.push('list');
  }
  replace(): void {
    this.#calls.push('replace');
  }
  apply(changes: readonly unknown[]): number {
    this.#calls.push(`apply ${changes.length}`);
    return changes.length;
  }
  set(): void {
    this.#calls.push('set');
  }
  replaceTable(): void {
    this.#calls.push('replaceTable');
  }
  readTable(): void {
    this.#calls.push('readTable');
  }
}

test('each change of a batch is a write, and reading is none', async () => {
  const metrics = createMetrics();
  const routes = new Recorder();
  const others = ['links', 'addresses', 'nexthops', 'rules', 'neighbours', 'trafficControl'].map((part) => [part, {}]);
  const socket = { ...Object.fromEntries(others), routes } as unknown as RouteSocket;
  const net = createKernelWrites(metrics, 'egress').net(socket) as unknown as { readonly routes: Recorder };
  net.routes.list();
  expect(written(await metrics.render())).toEqual([
    'unbounded_agent_kernel_writes_total{section="egress",subject="route"} 0',
  ]);
  net.routes.replace();
  expect(net.routes.apply(['one', 'two'])).toBe(2);
  expect(routes.calls()).toEqual(['list', 'replace', 'apply 2']);
  expect(written(await metrics.render())).toEqual([
    'unbounded_agent_kernel_writes_total{section="egress",subject="route"} 3',
  ]);
});

test('transactions of nftables and entries of maps are told apart, by section', async () => {
  const metrics = createMetrics();
  const [connectivity, l2] = ['connectivity', 'l2'].map((section) => createKernelWrites(metrics, section));
  const nft = connectivity!.nft(new Recorder() as unknown as Nftables) as unknown as Recorder;
  nft.replaceTable();
  nft.readTable();
  const map = l2!.map(new Recorder());
  map.set();
  map.set();
  expect(map.info).toEqual({ maxEntries: 4 });
  const text = written(await metrics.render());
  expect(text).toContain('unbounded_agent_kernel_writes_total{section="connectivity",subject="nftables"} 1');
  expect(text).toContain('unbounded_agent_kernel_writes_total{section="l2",subject="bpf_map"} 2');
});
