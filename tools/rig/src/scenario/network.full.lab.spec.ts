import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NODE_APPS, stopAgent } from '../apps/agents.ts';
import { kubectl, startApiServer, stopApiServer } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { checkout, nodeJs } from '../machine/paths.ts';
import {
  flowDuring,
  inPod,
  killAgent,
  machineState,
  nodeCondition,
  onNodeFor,
  podOn,
  timeUntil,
  twoSites,
} from './scenario.ts';
import { up } from '../substrate/up.ts';
import { captureWan } from './wan-capture.ts';
import { verify } from '../cli/verify.ts';
import { onNode, tryOnNode } from '../node/node.ts';
import { agentReady } from '../apps/agent-state.ts';
import { startAgent } from '../substrate/agents.ts';

/** The main job on one machine, and what must not disturb it. One lab serves all tests of this file. */

const layout = twoSites();
const REPAIR_MS = 10_000;
const AT_REST_S = 60;
const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
let before: Record<string, string[]>;

beforeAll(async () => {
  await down(); // what an interrupted run left
  before = machineState();
  await up(layout);
}, 300_000);

afterAll(async () => {
  await down();
  rmSync(work, { recursive: true, force: true });
}, 60_000);

test('every pod reaches every pod, node and Service, and the outside world', { timeout: 180_000 }, async () => {
  expect(await verify(layout)).toBe(true);
});

test('at rest nothing is written, neither into kernels nor into objects', { timeout: 120_000 }, async () => {
  const kinds = 'sites,sitenodeslices,gatewaypools,sitegatewaypoolassignments,gatewaypoolpeerings';
  const path = '{range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}';
  const versions = (): Promise<string> => kubectl(layout, ['get', kinds, '-o', `jsonpath=${path}`]);
  const watch = (node: string): Promise<string> =>
    onNodeFor(node, AT_REST_S, 'ip', 'monitor', 'link', 'address', 'route', 'nexthop', 'rule');
  await delay(10_000); // what verify set off is over
  const before = await versions();
  const seen = await Promise.all(['s1-w1', 's1-g1', 's2-g1'].map(watch));
  expect(seen).toEqual(['', '', '']);
  expect(await versions()).toBe(before);
});

test(
  'between the sites there is WireGuard, TLS to the API server, and nothing else',
  { timeout: 120_000 },
  async () => {
    const { wireGuard, ...others } = await captureWan(layout, join(work, 'wan.pcap'));
    expect(wireGuard).toBeGreaterThan(100);
    expect(others).toEqual({ others: [], inner: [], readable: 0 });
  },
);

describe('1,000 numbered datagrams a second across sites, both ways', () => {
  test('lose none when nothing happens', { timeout: 120_000 }, async () => {
    const report = await flowDuring(
      { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 60 },
      async () => {},
    );
    expect(report).toMatchObject({ sent: 60_000, received: 60_000 });
  });

  test(
    'lose none while agents of gateways and workers are killed and come back with rebuilt programs',
    { timeout: 180_000 },
    async () => {
      const rebuilt = join(work, 'rebuilt.bpf.o');
      execFileSync('clang', [
        '-O2',
        '-g',
        '-target',
        'bpf',
        '-mcpu=v2',
        `-I/usr/include/${execFileSync('uname', ['-m'], { encoding: 'utf8' }).trim()}-linux-gnu`,
        '-I',
        join(checkout, 'bpf'),
        '-c',
        join(checkout, 'bpf/unbounded_encap.bpf.c'),
        '-o',
        rebuilt,
      ]);
      // bpftool of Debian 12 does not know tcx links; our own library does.
      const script = `import('${checkout}/libs/libbpf-ts/src/index.ts').then((b) => console.log(b.openPinnedLink('${PIN_FOLDER}/links/unbounded0').info.programId))`;
      const programAt = (node: string): number => Number(onNode(node, nodeJs, '-e', script));
      const nodes = ['s1-g1', 's1-w1', 's2-g1', 's2-w1'];
      const programs = nodes.map(programAt);
      const report = await flowDuring(
        { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 62 },
        async () => {
          for (const node of nodes) {
            await killAgent(layout, node, 'node-dataplane', { UNBOUNDED_BPF_OBJECT: rebuilt });
            await timeUntil(`the agent of ${node} is ready`, () => agentReady(node), 30_000);
          }
        },
      );
      expect(report).toMatchObject({ sent: 62_000, received: 62_000 });
      for (const [index, node] of nodes.entries()) expect(programAt(node)).not.toBe(programs[index]);
    },
  );

  test(
    'lose none while the API server is away for a minute, an agent restarts and a route is removed by hand',
    { timeout: 240_000 },
    async () => {
      let repairedMs = Number.POSITIVE_INFINITY;
      const report = await flowDuring(
        { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 75 },
        async () => {
          await stopApiServer();
          const started = Date.now();
          await killAgent(layout, 's1-w1', 'node-dataplane');
          await killAgent(layout, 's2-g1', 'node-dataplane');
          onNode('s1-w2', 'ip', 'route', 'delete', '100.66.0.0/16');
          repairedMs = await timeUntil(
            'the route is back',
            () => onNode('s1-w2', 'ip', 'route').includes('100.66.0.0/16 dev unbounded0'),
            REPAIR_MS,
          );
          await timeUntil('the agent adopted its last plan', () => agentReady('s1-w1'), 30_000);
          await delay(Math.max(0, started + 60_000 - Date.now()));
          await startApiServer(layout);
        },
      );
      expect(report).toMatchObject({ sent: 75_000, received: 75_000 });
      expect(repairedMs).toBeLessThan(REPAIR_MS);
    },
  );

  test(
    'go on within two seconds after wireguard-go is killed, on the same interface',
    { timeout: 120_000 },
    async () => {
      const interfaceOf = (): string =>
        onNode('s1-g1', 'ip', '-br', 'link')
          .split('\n')
          .find((line) => line.startsWith('wg'))!
          .split(' ')[0]!;
      const name = interfaceOf();
      const index = onNode('s1-g1', 'cat', `/sys/class/net/${name}/ifindex`);
      const report = await flowDuring(
        { from: await podOn(layout, 's1-w1'), to: await podOn(layout, 's2-w1'), seconds: 20 },
        async () => {
          onNode('s1-g1', 'pkill', '-9', '-x', 'wireguard-go');
        },
      );
      expect(report.lost).toBeGreaterThan(0); // the kill was felt: the test can fail
      expect(report.largestGapMillis).toBeLessThan(2000);
      expect(onNode('s1-g1', 'cat', `/sys/class/net/${name}/ifindex`)).toBe(index);
    },
  );
});

describe('what is removed by hand is back within ten seconds', () => {
  const repaired = (what: string, holds: () => boolean): Promise<number> => timeUntil(what, holds, REPAIR_MS);

  test('a route', async () => {
    onNode('s1-w1', 'ip', 'route', 'delete', '100.65.0.0/16');
    await repaired('the route', () =>
      onNode('s1-w1', 'ip', 'route').includes('100.65.0.0/16 dev unbounded0 proto 117'),
    );
  });

  test('a map entry', async () => {
    const map = ['bpftool', 'map'] as const;
    const path = `${PIN_FOLDER}/maps/unbounded_endpoints_v4`;
    const keys = (): string[] =>
      (JSON.parse(onNode('s1-w1', ...map, 'dump', 'pinned', path, '-j')) as { key: string[] }[])
        .map(({ key }) => key.join(' '))
        .sort();
    const full = keys();
    onNode('s1-w1', ...map, 'delete', 'pinned', path, 'key', 'hex', ...full[0]!.replaceAll('0x', '').split(' '));
    expect(keys()).toHaveLength(full.length - 1);
    await repaired('the entry', () => keys().join() === full.join());
  });

  test('a WireGuard peer', async () => {
    const peers = (): string => onNode('s1-g1', 'wg', 'show', 'all', 'peers');
    const [name, key] = peers().trim().split('\t');
    onNode('s1-g1', 'wg', 'set', name!, 'peer', key!, 'remove');
    expect(peers()).not.toContain(key);
    await repaired('the peer', () => peers().includes(key!));
  });

  test('nft rules', async () => {
    onNode('s1-w1', 'nft', 'flush', 'chain', 'inet', 'unbounded', 'postrouting');
    await repaired('the rules', () =>
      onNode('s1-w1', 'nft', 'list', 'table', 'inet', 'unbounded').includes('masquerade'),
    );
  });

  test('the anchor device, with its program and routes', async () => {
    onNode('s1-w1', 'ip', 'link', 'delete', 'unbounded0');
    await repaired('the anchor', () => tryOnNode('s1-w1', 'ip', 'route')?.includes('dev unbounded0') ?? false);
    const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
    await inPod(layout, from, ['fetch', `http://${to.ip}:8080/`]);
  });
});

describe('what is not ours', () => {
  const foreignThings = (node: string): string[] => [
    onNode(node, 'ip', '-o', 'link', 'show', 'wg9').replace(/^\d+: |state \S+/g, ''),
    onNode(node, 'ip', '-o', 'link', 'show', 'vxlan9').replace(/^\d+: /, ''),
    onNode(node, 'ip', 'route', 'show', '192.0.2.0/24'),
    onNode(node, 'nft', 'list', 'table', 'inet', 'mine'),
  ];

  test(
    'a foreign link under one of our names is reported, left alone, and the network recovers when it goes',
    { timeout: 90_000 },
    async () => {
      const [node, app] = [layout.nodes.find(({ name }) => name === 's1-w2')!, 'node-dataplane'] as const;
      await stopAgent(node.name, app);
      onNode(node.name, 'ip', 'link', 'delete', 'vxlan0');
      onNode(
        node.name,
        'ip',
        'link',
        'add',
        'vxlan0',
        'type',
        'vxlan',
        'id',
        '77',
        'dstport',
        '5555',
        'local',
        node.internalIp,
      );
      await startAgent(layout, node, app);
      await timeUntil(
        'the condition',
        async () => (await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded'))?.reason === 'ForeignLink',
        30_000,
      );
      expect(onNode(node.name, 'ip', '-d', 'link', 'show', 'vxlan0')).toContain('vxlan id 77');
      onNode(node.name, 'ip', 'link', 'delete', 'vxlan0');
      await timeUntil(
        'the network is whole',
        async () => (await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded'))?.status === 'False',
        30_000,
      );
    },
  );

  test('stays through repair and uninstall, which takes exactly ours', { timeout: 120_000 }, async () => {
    const node = 's2-w2';
    onNode(node, 'ip', 'tuntap', 'add', 'wg9', 'mode', 'tun');
    onNode(node, 'ip', 'link', 'add', 'vxlan9', 'type', 'vxlan', 'id', '9', 'dstport', '4999', 'local', '10.2.0.32');
    onNode(node, 'ip', 'route', 'add', '192.0.2.0/24', 'via', '10.2.0.1');
    onNode(node, 'nft', 'add', 'table', 'inet', 'mine');
    const mine = foreignThings(node);
    onNode(node, 'ip', 'link', 'delete', 'unbounded0');
    await timeUntil('repair', () => tryOnNode(node, 'ip', 'link', 'show', 'unbounded0') !== undefined, REPAIR_MS);
    expect(foreignThings(node)).toEqual(mine);

    for (const app of NODE_APPS.toReversed()) await stopAgent(node, app);
    onNode(node, nodeJs, join(checkout, 'apps/node-dataplane/dist/main.mjs'), 'cleanup');
    expect(foreignThings(node)).toEqual(mine);
    expect(onNode(node, 'ip', '-o', 'link').match(/unbounded0|vxlan0|geneve0|ipip0|cbr0|wg5\d+/g)).toBeNull();
    expect(onNode(node, 'ip', 'route', 'show', 'proto', '117')).toBe('');
    expect(onNode(node, 'nft', 'list', 'tables')).not.toContain('unbounded');
    for (const path of [
      '/sys/fs/bpf/unbounded',
      '/run/unbounded',
      '/etc/cni/net.d/10-unbounded.conflist',
      '/opt/cni/bin/unbounded-cni',
    ]) {
      expect(tryOnNode(node, 'test', '-e', path, '-o', '-L', path), path).toBeUndefined();
    }
  });

  test(
    'a foreign cbr0 is reported, gets nothing of ours, and no pod is plugged into it',
    { timeout: 90_000 },
    async () => {
      const node = layout.nodes.find(({ name }) => name === 's2-w2')!; // uninstalled by the test before
      onNode(node.name, 'ip', 'link', 'add', 'cbr0', 'type', 'bridge');
      onNode(node.name, 'ip', 'address', 'add', '192.0.2.1/24', 'dev', 'cbr0');
      for (const app of NODE_APPS) await startAgent(layout, node, app);
      await timeUntil(
        'the condition',
        async () => {
          const condition = await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded');
          return condition?.reason === 'ForeignLink' && condition.message.includes('cbr0');
        },
        30_000,
      );
      expect(onNode(node.name, 'ip', '-br', '-4', 'address', 'show', 'cbr0')).toMatch(/192\.0\.2\.1\/24\s*$/);
      expect(tryOnNode(node.name, 'test', '-e', '/etc/cni/net.d/10-unbounded.conflist')).toBeUndefined();
      onNode(node.name, 'ip', 'link', 'delete', 'cbr0');
      await timeUntil(
        'the network is whole',
        async () => (await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded'))?.status === 'False',
        30_000,
      );
      expect(tryOnNode(node.name, 'test', '-e', '/etc/cni/net.d/10-unbounded.conflist')).toBe('');
    },
  );
});

test('down leaves the machine as it was before up', { timeout: 60_000 }, async () => {
  await down();
  expect(machineState()).toEqual(before);
});

test('down cleans up after an up that was killed half-way', { timeout: 60_000 }, async () => {
  const child = execFileSync(
    'bash',
    ['-c', `timeout -s KILL 7 ${nodeJs} ${join(checkout, 'tools/rig/src/cli/main.ts')} up || true`],
    { encoding: 'utf8' },
  );
  expect(child).toContain('bringing up');
  await down();
  expect(machineState()).toEqual(before);
  expect(existsSync('/var/lib/unbounded')).toBe(false);
});
