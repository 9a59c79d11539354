import { NetlinkError } from '@unbounded/netlink';
import { expect, test } from 'vitest';
import type { SectionContext } from '../../section.port.ts';
import { removeTraces } from './traces.ts';

const [ENOENT, EPERM] = [2, 1];

/** The kernel has a rule, and says this when it is to go. */
const kernel = (errno: number, done: string[]): Pick<SectionContext, 'net' | 'nft'> =>
  ({
    net: {
      rules: {
        list: async () => [{ protocol: 118 }],
        apply: async () => [{ ok: false, error: new NetlinkError(errno, 'delete rule') }],
      },
      routes: { list: async () => [], apply: async () => [] },
      links: { get: async () => undefined },
    },
    nft: {
      listTables: async () => [{ family: 'inet', name: 'unbounded_egress' }],
      deleteTable: async (family: string) => void done.push(family),
    },
  }) as unknown as Pick<SectionContext, 'net' | 'nft'>;

test('a rule that the kernel does not give up is an error, and the tables that guard it stay', async () => {
  const done: string[] = [];
  await expect(removeTraces(kernel(EPERM, done))).rejects.toThrow('EPERM');
  expect(done).toEqual([]);
});

test('one that is gone already is fine', async () => {
  const done: string[] = [];
  await removeTraces(kernel(ENOENT, done));
  expect(done).toEqual(['inet']);
});
