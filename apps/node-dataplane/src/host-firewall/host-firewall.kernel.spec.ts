import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createNftables } from '@unbounded/nftables';
import { until } from '@unbounded/testing';
import { startLineServer } from '@unbounded/testing/line-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Attempt, passagesOf, questionsOf, shotOf } from '../connectivity/kernel/boundary-attempts.testdata.ts';
import { type BoundaryLab, type LabOptions, openBoundaryLab } from '../connectivity/kernel/boundary-lab.testdata.ts';
import { FAMILIES, NODE_PORTS } from '../connectivity/kernel/boundary-network.testdata.ts';
import type { BoundaryAdditions } from '../kernel/boundary-additions.ts';
import type { Section, VersionedPlan } from '../section.port.ts';
import { type Backend, createIptables } from './iptables/iptables.ts';
import { planOpenings } from './iptables/openings.plan.ts';
import { ensureOpenings } from './iptables/openings.ts';
import type { HostFirewallMode } from './host-firewall.port.ts';
import { hostFirewall } from './section.ts';
import { sectionsInForce } from './section-in-force.testdata.ts';

/** A firewall of the host that drops what is forwarded and what comes in, by iptables' own programs, at the node of the boundary's network. */

const site = { allowedSourceCidrs: ['10.1.0.99/32', 'fd00:1::99/128'] };
const WORKER: LabOptions = { role: 'worker', protocol: 'VXLAN', dataplane: 'ebpf', site };
const GATEWAY: LabOptions = { role: 'gateway', protocol: 'WireGuard', dataplane: 'netlink', site };
const NATIVE_GATEWAY: LabOptions = { role: 'gateway', protocol: 'None', dataplane: 'ebpf', site };

/** As ufw has it: what is established passes, and what IPv6 needs. */
const FIREWALL = `*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p ICMP -j ACCEPT
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT
`;
/** What is for the node itself and has passed its filters. */
const PASSED = `table inet passed {
  counter passed { }
  counter marked { }
  chain c { type filter hook input priority 300; meta mark & 0x80 != 0 counter name marked; meta l4proto udp counter name passed; }
}`;

/** Somebody whose marks have the bit of ours. */
const MARKS_ALL = 'table inet marks { chain c { type filter hook prerouting priority -300; meta mark set 0x80; }\n}';

const IPS = ['ip', 'ip6'] as const;
const NO_BUS = '/nowhere';
/** Looks without a change are made by the tests that want one. */
const LONGEST_TIMER_MS = 1000;

const openNode = async (options: LabOptions, backend: Backend) => {
  const lab: BoundaryLab = await openBoundaryLab(options);
  const prefix = ['nsenter', `--net=${lab.ns.node.path}`];
  const run = (argv: readonly string[], input = ''): string =>
    execFileSync(prefix[0]!, [...prefix.slice(1), ...argv], { encoding: 'utf8', input, stdio: 'pipe' });
  const nft = createNftables({ netnsFd: lab.ns.node.fd });
  const resident = startLineServer(prefix[0]!, [...prefix.slice(1), 'cat']);
  await resident.ask('ok'); // by then it is in the namespace
  const iptables = createIptables({
    nft,
    prefix,
    legacyTables: (family) => readFileSync(`/proc/${resident.pid}/net/${family}_tables_names`, 'utf8'),
  });
  const restore = (): void => {
    for (const ip of IPS)
      run([`${ip}tables-${backend}-restore`], FIREWALL.replace('ICMP', ip === 'ip' ? 'icmp' : 'ipv6-icmp'));
  };
  restore();
  run(['nft', '-f', '-'], PASSED);
  let additions: BoundaryAdditions = {};
  let kept: VersionedPlan | undefined;
  let skippedMs = 0;
  const boundary = {
    set: (added: BoundaryAdditions) => void (additions = added),
    all: () => [additions],
    onChange: () => undefined,
  };
  const keptHere = { read: () => kept, write: (plan: VersionedPlan) => void (kept = plan) };
  const sections = sectionsInForce({ nft, boundary, kept: keptHere }, LONGEST_TIMER_MS);
  const elapsed = (): number => performance.now() + skippedMs;
  const open = (mode: HostFirewallMode): Promise<Section> =>
    sections.open(hostFirewall({ hostFirewall: mode, dbusSocket: NO_BUS }, () => iptables, elapsed));
  return {
    lab,
    iptables,
    run,
    restore,
    open,
    stop: () => sections.stop(),
    /** That much later. */
    skip: (ms: number) => void (skippedMs += ms),
    additions: () => additions,
    cleanUp: () =>
      hostFirewall({ hostFirewall: 'Accept', dbusSocket: NO_BUS }, () => iptables).cleanUp!({
        nft,
        say: () => undefined,
      } as never),
    saved: () =>
      IPS.map((ip) => run([`${ip}tables-${backend}-save`, '-t', 'filter']).replaceAll(/^#.*\n|\[.*\]/gm, '')),
    counted: async (counter: 'passed' | 'marked') =>
      (await nft.readCounters('inet', 'passed')).find(({ name }) => name === counter)!.packets,
    async close() {
      await sections.stop();
      resident.end();
      nft.close();
      lab.close();
    },
  };
};
type Node = Awaited<ReturnType<typeof openNode>>;

/** What comes natively from elsewhere is a stranger's, but for what the Site lists, what the pool routes and nodes without a tunnel. */
const isStranger = ({ from, source }: Attempt): boolean =>
  from === 'wan' || (from === 'lan' && (source === 'stranger' || source === 'router'));
const isForwarded = ({ arrives }: { readonly arrives: string }): boolean => arrives !== 'node';

describe.each([
  [WORKER, 'nft'],
  [GATEWAY, 'nft'],
  [NATIVE_GATEWAY, 'nft'],
  [WORKER, 'legacy'],
] as const)('at a %o behind iptables-%s that drops', (options, backend) => {
  const passages = passagesOf(options).filter(isForwarded);
  let node: Node;
  let before: string[];
  let section: Section | undefined;
  beforeAll(async () => {
    node = await openNode(options, backend);
    before = node.saved();
  });
  afterAll(() => node.close());

  const arrivals = async (attempt: Attempt): Promise<string[]> => {
    const all = [];
    for (const family of FAMILIES) all.push(...(await node.lab.shoot(shotOf(node.lab, attempt, family))));
    return all;
  };
  /** UDP to a port of the node: how many packets pass the filters. */
  const reached = async (attempt: Omit<Attempt, 'what' | 'to'>): Promise<number> => {
    const count = await node.counted('passed');
    for (const family of FAMILIES) await node.lab.shoot(shotOf(node.lab, { ...attempt, to: 'node' }, family));
    return (await node.counted('passed')) - count;
  };

  test('nothing is forwarded without our rule, and the report says by which chain', async () => {
    for (const { what, ...attempt } of passages) expect(await arrivals({ what, ...attempt }), what).toEqual([]);
    const { problems, refuses } = await ensureOpenings(node.iptables, 'Report');
    expect(refuses).toBe(true);
    expect(problems).toHaveLength(4); // FORWARD and INPUT of both families
    expect(problems[0]!.message).toContain('may drop packets of the overlay: policy DROP');
    expect(node.saved()).toEqual(before);
  });

  /** With the section in force; each test can be the first. */
  const openNow = async (): Promise<void> => {
    if (section) return;
    section = await node.open('Accept');
    const { report } = await section.pass();
    expect(report.problems).toEqual([]);
    expect(report.events!.map(({ reason }) => reason)).toEqual(['HostFirewallOpened', 'HostFirewallOpened']);
    expect(node.additions()).toEqual({ marksPassing: true });
    await node.lab.apply(node.lab.plan, [node.additions()]);
  };

  test('with it what belongs to the overlay passes, and what strangers send to pods and Services stays dropped', async () => {
    await openNow();
    expect(passages.filter(isStranger).length).toBeGreaterThan(0);
    for (const { arrives, ...attempt } of passages)
      expect(await arrivals(attempt), attempt.what).toEqual(isStranger(attempt) ? [] : [arrives, arrives]);
    expect(await node.lab.marked()).toBe(0);
  });

  test('a node that is linked with this one reaches Services here by the LAN, and a stranger does not', async () => {
    await openNow();
    const to = { what: 'a Service', from: 'lan', to: 'node', port: NODE_PORTS.local } as const;
    expect(await arrivals({ ...to, source: 'stranger' })).toEqual([]);
    expect(await arrivals({ ...to, source: 'nearNode' })).toEqual(['pod', 'pod']);
  });

  test('a mark of somebody else opens nothing', async () => {
    await openNow();
    node.run(['nft', '-f', '-'], MARKS_ALL);
    for (const attempt of passages.filter(isStranger)) expect(await arrivals(attempt), attempt.what).toEqual([]);
    expect(await reached({ from: 'lan', source: 'stranger' })).toBe(0);
    node.run(['nft', 'delete', 'table', 'inet', 'marks']);
  });

  test('pods reach what is outside, and get its answers', async () => {
    await openNow();
    for (const question of questionsOf(options).filter(({ from }) => from === 'pod'))
      for (const family of FAMILIES)
        expect(await node.lab.ask(shotOf(node.lab, question, family)), question.what).not.toBe('');
  });

  test('the node itself is reached from pods and out of the overlay, and by tunnel packets of peers alone', async () => {
    await openNow();
    expect(await reached({ from: 'pod', source: 'ownPod' })).toBe(2);
    expect(await reached({ from: 'lan', source: 'stranger' })).toBe(0);
    expect(await reached({ from: 'lan', source: 'stranger', port: 4789 })).toBe(0);
    expect(await reached({ from: 'wan', source: 'internet', port: 51_821 })).toBe(0);
    if (options.protocol === 'VXLAN') {
      expect(await reached({ from: 'lan', source: 'nearNode', port: 4789 })).toBeGreaterThan(0); // of IPv4: underlay of the tunnel
      expect(await reached({ from: 'lan', source: 'nearNode', port: 9000 })).toBe(0);
    }
    expect(await node.counted('marked')).toBe(0); // what is inside a tunnel's packet would have it, too
  });

  /** The rule stands in each chain that refuses, and where it must. */
  const isOpen = async (): Promise<boolean> => {
    const plans = (await node.iptables.find()).map(async (id) => planOpenings(await node.iptables.read(id)));
    return (await Promise.all(plans)).every(({ removals, insertions }) => removals.length + insertions.length === 0);
  };

  test('another rule before ours, a flush, and a reload without it are mended at once', async () => {
    await openNow();
    const rule = passages.find(({ from }) => from === 'pod')!;
    for (const disturb of [
      () => node.run([`iptables-${backend}`, '-I', 'FORWARD', '1', '-j', 'REJECT']),
      () => node.run([`iptables-${backend}`, '-F', 'FORWARD']),
      () => node.restore(),
    ]) {
      expect(await isOpen()).toBe(true);
      disturb();
      // Of x_tables nobody hears; the next pass finds it.
      if (backend === 'legacy') {
        expect(await isOpen()).toBe(false);
        node.skip(5000);
        await section!.pass();
      }
      await until('our rule is back', isOpen, 5000);
      expect(await arrivals(rule), rule.what).toEqual([rule.arrives, rule.arrives]);
    }
  });

  test('uninstall leaves the firewall as it was', async () => {
    await openNow();
    await node.stop();
    await node.cleanUp();
    expect(node.saved()).toEqual(before);
  });
});

test('a table that goes and comes back with its firewall is opened again', async () => {
  const node = await openNode(WORKER, 'nft');
  await (await node.open('Accept')).pass();
  const before = node.saved();
  node.run(['nft', 'delete', 'table', 'ip', 'filter']);
  await until('no table is left to open', async () => (await node.iptables.find()).length === 1);
  node.restore();
  await until('our rule is back', () => node.saved().join() === before.join(), 5000);
  expect(before[0]).toContain('unbounded');
  await node.close();
});

test('a node without iptables gets no table of it', async () => {
  const lab = await openBoundaryLab(WORKER);
  const nft = createNftables({ netnsFd: lab.ns.node.fd });
  const before = await nft.listTables();
  const prefix = ['nsenter', `--net=${lab.ns.node.path}`];
  const outcome = await ensureOpenings(createIptables({ nft, prefix, legacyTables: () => '' }), 'Accept');
  expect(outcome).toEqual({
    tables: [],
    refuses: false,
    isStuck: false,
    refusing: 0,
    blocking: 0,
    problems: [],
    events: [],
  });
  expect(await nft.listTables()).toEqual(before);
  nft.close();
  lab.close();
});

test('without iptables’ programs the report says what stays dropped', async () => {
  const nft = { hasTable: async (family: string) => family === 'ip', listNames: async () => undefined };
  const { refuses, problems } = await ensureOpenings(
    createIptables({ nft, prefix: ['/nonexistent/nsenter'], legacyTables: () => '' }),
    'Accept',
  );
  expect(refuses).toBeUndefined();
  expect(problems).toEqual([
    {
      reason: 'HostFirewallNotManaged',
      message:
        'iptables (nf_tables): /nonexistent/nsenter is not installed; what it drops of the overlay stays dropped',
    },
  ]);
});
