import type { Forwarding } from '@unbounded/status';

/** What a node answers. */
export const forwardingOf = (keys: readonly string[] = ['100.64.1.0/24']): Forwarding => ({
  ...{ readTime: '2026-01-01T00:00:00.000Z', dataplane: 'ebpf', total: keys.length, different: 0 },
  entries: keys.map((key) => ({
    ...{ table: 'unbounded_endpoints_v4', key, state: 'InSync' },
    wanted: [{ device: 'wg51820', kind: 'wireguard' }],
    present: [{ device: 'wg51820', kind: 'wireguard' }],
  })),
});
