import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createEthtool, createNetns, createRouteSocket } from '../src/index.ts';

test('a device sends nothing longer than its MTU in one piece any more, and no checksum that is to be written, and keeps its other features', async () => {
  using ns = createNetns();
  await using net = createRouteSocket({ netnsFd: ns.fd });
  const { index } = await net.links.create({ name: 'one', kind: { kind: 'veth', peer: { name: 'other' } } });
  const features = (): Map<string, string> =>
    new Map(
      execFileSync('nsenter', [`--net=${ns.path}`, 'ethtool', '-k', 'one'], { encoding: 'utf8' })
        .split('\n')
        .map((line) => line.trim().split(': ') as [string, string]),
    );
  const before = features();
  using ethtool = createEthtool({ netnsFd: ns.fd });
  await ethtool.turnTransmitOffloadsOff(index);
  const after = features();
  for (const name of [
    'tcp-segmentation-offload',
    'generic-segmentation-offload',
    'tx-udp-segmentation',
    'tx-checksumming',
  ])
    expect([name, before.get(name), after.get(name)]).toEqual([name, 'on', expect.stringMatching(/^off/)]);
  for (const name of ['rx-checksumming', 'rx-vlan-offload'])
    expect([name, after.get(name)]).toEqual([name, before.get(name)]);
  await expect(ethtool.turnTransmitOffloadsOff(4242)).rejects.toThrow(
    'turn segmentation and checksum offload of link 4242 off',
  );
});
