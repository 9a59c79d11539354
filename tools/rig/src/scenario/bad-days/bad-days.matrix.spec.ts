import { setTimeout as delay } from 'node:timers/promises';
import { NFT_TABLE } from '@unbounded/config/ownership';
import { hexOf, routerAdvertisement } from '@unbounded/testing/packets';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { agentReady } from '../../apps/agent-state.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import { stopAgent } from '../../apps/agents.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { applyManifests, kubectl, startApiServer, stopApiServer } from '../../kubernetes/control-plane.ts';
import { pidOf } from '../../machine/daemon.ts';
import { down } from '../../substrate/down.ts';
import { apiServerIp, type LabNode, layoutOf, namespaceOf, routerName } from '../../layout/layout.ts';
import { DATAPLANES } from '../../layout/options.ts';
import { allHealthy } from '../outages.ts';
import { binary } from '../../machine/paths.ts';
import { turnOff, turnOn } from '../reboot.ts';
import { podOn, timeUntil } from '../scenario.ts';
import { up } from '../../substrate/up.ts';
import { clockOf, stepClock } from './clock.ts';
import { type Day, duringTraffic, healed, HEALED_MS, reaches, repairsDrift, toldAs } from './days.ts';
import { changeDisk, cutFilesShort, fullDisk, readOnlyDisk } from './disk.ts';
import { onNode, tryOnNode } from '../../node/node.ts';
import { startAgent } from '../../substrate/agents.ts';

/** Machines and the control plane fail in ordinary ways: nobody else notices, nothing leaks, and it heals by itself. */

const TEST = { timeout: 240_000 };
const NOTHING: Day = { lost: [], leaked: [] };
const BOOT_MS = 60_000;

describe.each(DATAPLANES)('data path %s', (dataplane) => {
  const layout = layoutOf({ ip: 'dual', workers: 2, protocol: 'WireGuard', dataplane });
  const nodeNamed = (name: string): LabNode => layout.nodes.find((node) => node.name === name)!;
  const worker = nodeNamed('s2-w1');
  const gateway = nodeNamed('s2-g1');
  /** Of pods that a broken node reaches, or not: one of its site and one of the other. */
  let addresses: readonly string[];

  beforeAll(async () => {
    await down();
    await up(layout);
    await allHealthy(layout, 60_000);
    const pods = await Promise.all(['s2-w2', 's1-w1'].map((node) => podOn(layout, node)));
    addresses = pods.flatMap(({ ips }) => ips);
  }, 400_000);
  afterAll(down, 60_000);
  /** A day that ended half-way leaves no node off for the next. */
  afterEach(async () => {
    for (const node of layout.nodes) if (pidOf(`node-${node.name}`) === undefined) await turnOn(layout, node);
  }, 60_000);

  /** Until the node reaches every address, by both families. Before our firewall stands nothing is promised, and nothing is sent. */
  const carries = async (node: LabNode, limitMs: number): Promise<number> => {
    // The sets of a new table come before its chains.
    const isGuarded = (): boolean =>
      tryOnNode(node.name, 'nft', 'list', 'chain', 'inet', NFT_TABLE, 'leaks') !== undefined;
    await timeUntil(`${node.name} has its firewall`, isGuarded, limitMs);
    const reachesAll = (): boolean => addresses.every((ip) => reaches(node, ip));
    return await timeUntil(`${node.name} reaches ${addresses.join(', ')}`, reachesAll, limitMs);
  };

  const untilReady = (node: LabNode, limitMs: number): Promise<number> =>
    timeUntil(`the agent of ${node.name} is ready`, () => agentReady(node.name), limitMs);

  const restartAgent = async (node: LabNode, env: NodeJS.ProcessEnv = {}): Promise<void> => {
    await stopAgent(node.name, NODE_AGENT, 'SIGKILL');
    await startAgent(layout, node, NODE_AGENT, env);
  };

  test('a disk that is full', TEST, async () => {
    const disk = fullDisk(worker);
    const setMtu = (tunnelMTU: number | null): Promise<string> =>
      kubectl(layout, ['patch', 'site', worker.site, '--type=merge', '-p', JSON.stringify({ spec: { tunnelMTU } })]);
    const day = await duringTraffic(layout, worker, async () => {
      disk.begin();
      try {
        await setMtu(1350); // there is something to write
        await toldAs(layout, worker, /StateNotWritable/);
        await repairsDrift(worker);
        await carries(worker, HEALED_MS);
      } finally {
        disk.end();
      }
      await healed(layout, worker);
      changeDisk(worker);
      await setMtu(null);
    });
    expect(day).toEqual(NOTHING);
  });

  test('a disk that takes no writes any more', TEST, async () => {
    const disk = readOnlyDisk(worker);
    const day = await duringTraffic(layout, worker, async () => {
      disk.begin();
      try {
        await restartAgent(worker);
        await toldAs(layout, worker, /StateNotWritable/);
        await repairsDrift(worker);
        await carries(worker, HEALED_MS);
      } finally {
        disk.end();
      }
      await healed(layout, worker);
    });
    expect(day).toEqual(NOTHING);
  });

  test('a node that boots with a full disk', TEST, async () => {
    const disk = fullDisk(worker);
    const day = await duringTraffic(layout, worker, async () => {
      await turnOff(worker);
      await turnOn(layout, worker, { beforeAgents: () => disk.begin() });
      await carries(worker, BOOT_MS);
      disk.end();
      await healed(layout, worker);
      changeDisk(worker);
    });
    expect(day).toEqual(NOTHING);
  });

  test('a power cut that leaves files half written', TEST, async () => {
    const day = await duringTraffic(layout, worker, async () => {
      await turnOff(worker);
      await turnOn(layout, worker, { beforeAgents: () => cutFilesShort(worker) });
      await carries(worker, BOOT_MS);
      await healed(layout, worker);
    });
    expect(day).toEqual(NOTHING);
  });

  test('clocks that are stepped an hour ahead and back', TEST, async () => {
    stepClock(worker.name, 0);
    await restartAgent(worker, clockOf(worker.name));
    await carries(worker, BOOT_MS);
    const day = await duringTraffic(layout, worker, async () => {
      for (const seconds of [3600, -3600, 0]) {
        stepClock(worker.name, seconds);
        await delay(1000);
        await repairsDrift(worker);
        await carries(worker, HEALED_MS);
      }
    });
    await restartAgent(worker);
    expect(day).toEqual(NOTHING);
  });

  /** Before every certificate of the cluster: the API server's is not valid yet. */
  const TWENTY_YEARS_S = 20 * 365 * 86_400;

  test('a node that boots with a clock of twenty years ago', TEST, async () => {
    const day = await duringTraffic(layout, worker, async () => {
      await turnOff(worker);
      stepClock(worker.name, -TWENTY_YEARS_S);
      await turnOn(layout, worker, { env: clockOf(worker.name) });
      await carries(worker, BOOT_MS);
      await repairsDrift(worker);
      stepClock(worker.name, 0);
      await untilReady(worker, HEALED_MS);
    });
    await restartAgent(worker);
    expect(day).toEqual(NOTHING);
  });

  test('a default route that a router advertises', TEST, async () => {
    const router = namespaceOf(routerName(worker.site));
    const mac = (JSON.parse(run(['ip', '-n', router, '-j', 'link', 'show', 'lan0'])) as { address: string }[])[0]!
      .address;
    const advertise = (): void =>
      void run([...inNamespace(router), binary('probe'), 'inject', 'frames', 'lan0'], {
        input: `${hexOf(routerAdvertisement(mac, `fe80::${worker.site.slice(1)}`))}\n`,
      });
    const defaultRoute = (): string => run(['ip', '-n', namespaceOf(worker.name), '-6', 'route', 'show', 'default']); // also of a node that is off
    const before = defaultRoute();
    const day = await duringTraffic(layout, worker, async () => {
      await turnOff(worker);
      run(['ip', '-n', router, 'addr', 'replace', `fe80::${worker.site.slice(1)}/64`, 'dev', 'lan0', 'nodad']);
      run(['ip', '-n', namespaceOf(worker.name), '-6', 'route', 'delete', 'default']);
      run([...inNamespace(namespaceOf(worker.name)), 'sysctl', '-qw', 'net.ipv6.conf.eth0.accept_ra=1']);
      advertise();
      await timeUntil('the route is learned', () => defaultRoute().includes('proto ra'), HEALED_MS);
      await turnOn(layout, worker);
      await carries(worker, BOOT_MS);
      expect(defaultRoute()).toContain('proto ra');
      onNode(worker.name, 'ip', '-6', 'route', 'delete', 'default');
      advertise();
      await timeUntil('the route is learned anew', () => defaultRoute().includes('proto ra'), HEALED_MS);
    });
    const via = /via (\S+)/.exec(before)?.[1];
    if (via) onNode(worker.name, 'ip', '-6', 'route', 'replace', 'default', 'via', via);
    expect(day).toEqual(NOTHING);
  });

  test('a node whose internal address is not the first on its device', TEST, async () => {
    const reAddress = (...lines: readonly string[]): void =>
      void run(['ip', '-n', namespaceOf(worker.name), '-batch', '-'], { input: `${lines.join('\n')}\n` });
    const own = `${worker.internalIp}/24`;
    const other = '10.2.0.199/24';
    const gone = tryOnNode(worker.name, 'ip', 'route', 'show', 'default')?.trim();
    const day = await duringTraffic(layout, worker, async () => {
      reAddress(
        `addr delete ${own} dev eth0`,
        `addr add ${other} dev eth0`,
        `addr add ${own} dev eth0`,
        `route replace ${gone}`,
      );
      await restartAgent(worker);
      await carries(worker, BOOT_MS);
      reAddress(
        `addr delete ${own} dev eth0`,
        `addr delete ${other} dev eth0`,
        `addr add ${own} dev eth0`,
        `route replace ${gone}`,
      );
      await carries(worker, HEALED_MS);
    });
    expect(day).toEqual(NOTHING);
  });

  test('no default route', TEST, async () => {
    const routes = (family: string): string =>
      tryOnNode(nodeNamed('s1-w2').name, 'ip', family, 'route', 'show', 'default')?.trim() ?? '';
    const node = nodeNamed('s1-w2'); // it has the API server on its LAN
    const [four, six] = [routes('-4'), routes('-6')];
    const day = await duringTraffic(layout, node, async () => {
      for (const family of ['-4', '-6']) onNode(node.name, 'ip', family, 'route', 'delete', 'default');
      await restartAgent(node);
      await untilReady(node, BOOT_MS);
      await repairsDrift(node);
      await timeUntil('it reaches its site', async () => reaches(node, (await podOn(layout, 's1-w1')).ip), BOOT_MS);
      onNode(node.name, 'ip', '-4', 'route', 'add', ...four.split(' '));
      onNode(
        node.name,
        'ip',
        '-6',
        'route',
        'add',
        ...six.split(' ').filter((word) => !['pref', 'medium'].includes(word)),
      );
      await healed(layout, node);
    });
    expect(day).toEqual(NOTHING);
  });

  /** What the API server is like meanwhile, and back. */
  const API_SERVERS: readonly [string, { begin(): Promise<void> | void; end(): Promise<void> | void }][] = [
    [
      'that drops every packet',
      {
        begin: () =>
          void onNode(
            's1-cp',
            'nft',
            'table inet outage { chain c { type filter hook input priority -400; tcp dport 6443 drop; }; chain d { type filter hook output priority -400; tcp sport 6443 drop; }; }',
          ),
        end: () => void onNode('s1-cp', 'nft', 'delete', 'table', 'inet', 'outage'),
      },
    ],
    [
      'that takes connections and answers nothing',
      {
        begin: () => void process.kill(pidOf('kube-apiserver')!, 'SIGSTOP'),
        end: () => void process.kill(pidOf('kube-apiserver')!, 'SIGCONT'),
      },
    ],
  ];

  test.each(API_SERVERS)('an API server %s', TEST, async (_, state) => {
    const day = await duringTraffic(layout, worker, async () => {
      await state.begin();
      try {
        for (let times = 0; times < 3; times++) {
          await repairsDrift(worker);
          await carries(worker, HEALED_MS);
          await delay(3000);
        }
      } finally {
        await state.end();
      }
    });
    expect(day).toEqual(NOTHING);
  });

  test('a Site whose blocks hold the API server, a gateway and everything else', TEST, async () => {
    const site = (cidrBlocks: readonly string[]): string =>
      JSON.stringify({
        apiVersion: 'net.unbounded-cloud.io/v1alpha1',
        kind: 'Site',
        metadata: { name: 'mistake' },
        spec: { nodeCidrs: ['192.0.2.0/24'], podCidrAssignments: [{ cidrBlocks, assignmentEnabled: false }] },
      });
    const day = await duringTraffic(layout, worker, async () => {
      for (const block of ['0.0.0.0/0', '127.0.0.0/8', '224.0.0.0/4', '169.254.0.0/16'])
        await expect(applyManifests(layout, site([block])), block).rejects.toThrow(/cidrBlocks/);
      const apiServer = layout.controlPlane.external.ip;
      try {
        for (const block of [
          `${apiServer}/32`,
          `${gateway.external!.ip}/32`,
          '203.0.113.96/27',
          layout.sites[1]!.lans[0]!,
        ]) {
          await applyManifests(layout, site([block]));
          await delay(3000);
          for (const { name, site: home } of layout.nodes)
            expect(onNode(name, 'ip', 'route', 'get', apiServerIp(layout, home)), `${name}, ${block}`).not.toMatch(
              /unbounded0|vxlan0|wg\d/,
            );
        }
      } finally {
        await kubectl(layout, ['delete', 'site', 'mistake', '--wait=false', '--ignore-not-found']);
      }
    });
    expect(day).toEqual(NOTHING);
  });

  test('a node-keeper whose folder goes away', TEST, async () => {
    const day = await duringTraffic(layout, worker, async () => {
      onNode(worker.name, 'mv', '/run/unbounded/keeper/units', '/run/units-gone');
      await delay(5000);
      await carries(worker, HEALED_MS);
      onNode(
        worker.name,
        'bash',
        '-c',
        'rm -rf /run/unbounded/keeper/units; mv /run/units-gone /run/unbounded/keeper/units',
      );
      await carries(worker, HEALED_MS);
    });
    expect(day).toEqual(NOTHING);
  });

  test.each(['s2-w1', 's2-g1'])('%s boots while there is no API server', TEST, async (name) => {
    const node = nodeNamed(name);
    const day = await duringTraffic(layout, node, async () => {
      await turnOff(node);
      await stopApiServer();
      try {
        await turnOn(layout, node);
        await carries(node, BOOT_MS);
        await repairsDrift(node);
      } finally {
        await startApiServer(layout);
      }
    });
    // Behind a gateway that is off there is nobody to take its place here: only what leaks counts.
    expect(node.role === 'gateway' ? { ...day, lost: [] } : day).toEqual(NOTHING);
  });
});
