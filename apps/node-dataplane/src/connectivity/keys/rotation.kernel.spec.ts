import { expect, test } from 'vitest';
import { exchangeKeys } from './rotation.testdata.ts';

/** Keys are exchanged while pods send 500 packets a second each way, by real agents and wireguard-go. More: rotation.full.kernel.spec.ts. */

test('in a mesh a node exchanges its key, then both at once: nothing is lost, and nothing of the old keys is left', async () => {
  await expect(exchangeKeys({ dataplane: 'ebpf', role: 'mesh' })).resolves.toBeUndefined();
}, 240_000);
