import { innerMac } from '@unbounded/bpf-maps';
import { PORTS } from '@unbounded/config/ownership';
import type { TcpFlows } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { datagram, vxlan } from '../../data-path/netlink/packets.testdata.ts';
import {
  addressOf,
  type Lab,
  type NodeName,
  NODES,
  OVERLAY,
  type Place,
  POD,
  startLab,
} from './node-addresses-lab.testdata.ts';

/* oxlint-disable max-lines-per-function -- the tests of two specs */

/** What site 2 sends to the nodes of site 1 themselves, and their answers: for each data path a spec. */

const KUBELET = 10_250;
const FAMILIES = [4, 6] as const;
const FLOWS = 20;

/** Datagrams of a length that nothing else has: inside, and of VXLAN around them over IPv4. */
const SIZE = 777;
const OUTER_BYTES = { 4: SIZE + 28 + 50, 6: SIZE + 48 + 50 } as const;

const WATCH_LAN = `table bridge watch {
  counter native { }
  counter once4 { }
  counter once6 { }
  chain c {
    type filter hook forward priority 0;
    meta l4proto tcp tcp dport ${KUBELET} counter name native
    meta l4proto tcp tcp sport ${KUBELET} counter name native
    ip length ${OUTER_BYTES[4]} udp dport ${PORTS.vxlan} counter name once4
    ip length ${OUTER_BYTES[6]} udp dport ${PORTS.vxlan} counter name once6
  }
}`;
/** As kube-proxy translates a NodePort of a gateway to a pod of the other site. */
const NODE_PORT = 30_080;
const SERVICE = `table inet service {
  chain pre {
    type nat hook prerouting priority dstnat;
    iifname eth0 tcp dport ${NODE_PORT} dnat ip to ${POD[4]}:${KUBELET}
    iifname eth0 tcp dport ${NODE_PORT} dnat ip6 to [${POD[6]}]:${KUBELET}
  }
  chain post {
    type nat hook postrouting priority srcnat;
    ct status dnat masquerade
  }
}`;
/** At a node of site 2: what came out of its tunnel with a node's address of site 1. */
const WATCH_NODE = `table inet watch {
  counter own { }
  counter others { }
  counter sized { }
  chain c {
    type filter hook input priority 0;
    udp dport 7000 ip saddr ${addressOf('x1', 4)} counter name own
    udp dport 7000 ip saddr ${addressOf('w1', 4)} counter name others
    udp dport 7000 ip6 saddr ${addressOf('x1', 6)} counter name own
    udp dport 7000 ip6 saddr ${addressOf('w1', 6)} counter name others
    udp dport 7001 counter name sized
  }
}`;

const SEND = `use Socket qw(:all);
my ($to, $port, $bytes) = @ARGV;
my ($problem, $at) = getaddrinfo($to, $port, { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM });
die $problem if $problem;
socket(my $socket, $at->{family}, SOCK_DGRAM, 17) or die $!;
send($socket, pack("H*", $bytes), 0, $at->{addr}) or die $!;`;

/** Answers three datagrams to port 5353 of any address, each from where the kernel chooses; says first that it listens. */
const UDP_SERVER = `use IO::Socket::IP;
my $s = IO::Socket::IP->new(LocalHost => "::", LocalPort => 5353, Proto => "udp", V6Only => 0) or die $@;
if (fork) { exit; } alarm 30;
open STDOUT, ">", "/dev/null"; open STDERR, ">", "/dev/null";
for (1 .. 3) { $s->recv(my $question, 99); $s->send("answer"); }`;
/** Connected: it takes an answer from whom it asked alone. */
const UDP_CLIENT = `use IO::Socket::IP;
my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => 5353, Proto => "udp") or die $@;
local $SIG{ALRM} = sub { print "no answer from there"; exit; };
alarm 10; $s->send("question"); $s->recv(my $answer, 99); print $answer;`;

export const describeNodeAddresses = (dataplane: 'ebpf' | 'netlink') =>
  describe(`by ${dataplane}`, () => {
    let lab: Lab;
    const nft = (place: Place, input: string): void =>
      void lab.within(place, 'sh', '-c', `nft -f - <<'END'\n${input}\nEND`);
    const counted = (place: Place, family: string, name: string): number =>
      Number(/packets (\d+)/.exec(lab.within(place, 'nft', 'list', 'counter', family, 'watch', name))![1]);
    const send = (from: Place, to: string, port: number, bytes: Uint8Array): string =>
      lab.within(from, 'perl', '-e', SEND, to, String(port), Buffer.from(bytes).toString('hex'));
    const allSee = (...but: NodeName[]): Promise<unknown> =>
      Promise.all(NODES.filter((node) => !but.includes(node)).map((node) => lab.sees(node, 'all')));
    const flowsTo = (from: Place, to: NodeName, family: 4 | 6): Promise<TcpFlows> =>
      lab.flows(from, { host: addressOf(to, family), port: KUBELET }, FLOWS);
    const rules = (node: NodeName): string =>
      ['-4', '-6'].map((family) => lab.within(node, 'ip', family, 'rule', 'show')).join('');
    const table = (node: NodeName): string =>
      ['-4', '-6'].map((family) => lab.within(node, 'ip', family, 'route', 'show', 'table', '251')).join('');
    const masqueraded = new Map<4 | 6, TcpFlows>();
    const preserved: { readonly family: 4 | 6; readonly ofPod: TcpFlows; readonly ofNode: TcpFlows }[] = [];
    let [first, second]: Awaited<ReturnType<Lab['apply']>>[] = [];

    beforeAll(async () => {
      lab = startLab(dataplane);
      // h1 is of the version before.
      first = await lab.apply((node) => node !== 'h1');
      await allSee();
      nft('lan1', WATCH_LAN);
      nft('w2', WATCH_NODE);
      nft('w1', WATCH_NODE);
      for (const place of ['w1', 'h1', 'pod2'] as const) await lab.serve(place, KUBELET);
      for (const family of FAMILIES) masqueraded.set(family, await flowsTo('pod2', 'w1', family));
    }, 120_000);
    afterAll(() => lab.close());

    test.each(FAMILIES)(
      'beside a gateway of the version before, nodes see the address of a gateway, IPv%i',
      async (family) => {
        expect(rules('g1')).not.toContain('lookup 251');
        const flows = masqueraded.get(family)!;
        const gateways = new Set([addressOf('g1', family), addressOf('h1', family)]);
        expect(flows.sources.filter((source) => gateways.has(source))).toHaveLength(FLOWS);
        expect(await flows.alive()).toBe(FLOWS);
        expect(counted('lan1', 'bridge', 'native')).toBeGreaterThan(0);
      },
    );

    describe('when all gateways do', () => {
      let [nativeBefore, nativeAfter] = [0, -1];
      beforeAll(async () => {
        second = await lab.apply();
        await allSee();
        nativeBefore = counted('lan1', 'bridge', 'native');
        const opening = FAMILIES.flatMap((family) =>
          (['w1', 'h1'] as const).map(async (to) => {
            const [ofPod, ofNode] = await Promise.all([flowsTo('pod2', to, family), flowsTo('w2', to, family)]);
            preserved.push({ family, ofPod, ofNode });
          }),
        );
        await Promise.all(opening);
        nativeAfter = counted('lan1', 'bridge', 'native');
      }, 120_000);

      test('a gateway has rules and marks after two passes, and all nodes their plans', () => {
        const problems = [...first!, ...second!].flatMap((node) => node.problems);
        expect(problems.filter((message) => !message.includes('runs unencrypted'))).toEqual([]);
        expect(second!.map(({ passes }) => passes)).toEqual(NODES.map((node) => (['g1', 'h1'].includes(node) ? 2 : 1)));
        expect(rules('g1').match(/fwmark 0x10\/0xf0 lookup 251/g)).toHaveLength(2);
      });

      test('connections from before go on', async () => {
        for (const flows of masqueraded.values()) expect(await flows.alive()).toBe(FLOWS);
      });

      test('nodes see the sender’s own address, and the LAN tunnel packets alone', () => {
        for (const { family, ofPod, ofNode } of preserved) {
          expect(ofPod.sources).toEqual(Array(FLOWS).fill(POD[family]));
          expect(ofNode.sources).toEqual(Array(FLOWS).fill(addressOf('w2', family)));
        }
        expect(preserved).toHaveLength(4);
        expect(nativeAfter).toBe(nativeBefore);
      });

      test.each(FAMILIES)(
        'a UDP server on all addresses answers from the one at which it is asked, IPv%i',
        (family) => {
          for (const server of ['w1', 'x1', 'g1', 'h1'] as const) {
            lab.within(server, 'perl', '-e', UDP_SERVER);
            for (const client of ['pod2', 'w2', 'g2'] as const)
              expect(
                lab.within(client, 'perl', '-e', UDP_CLIENT, addressOf(server, family)),
                `${client} asks ${server}`,
              ).toBe('answer');
          }
        },
      );

      test.each(FAMILIES)('a packet is in one tunnel packet: none leads into the tunnel again, IPv%i', (family) => {
        const [before, sized] = [counted('lan1', 'bridge', `once${family}`), counted('w1', 'inet', 'sized')];
        send('pod2', addressOf('w1', family), 7001, new Uint8Array(SIZE));
        expect(counted('w1', 'inet', 'sized')).toBe(sized + 1);
        expect(counted('lan1', 'bridge', `once${family}`)).toBe(before + 1);
      });

      test.each(FAMILIES)(
        'a node gets the answers of a Service by the gateway that it asked, IPv%i',
        async (family) => {
          nft('g1', SERVICE);
          const flows = await lab.flows('x1', { host: addressOf('g1', family), port: NODE_PORT }, 3);
          lab.within('g1', 'nft', 'delete', 'table', 'inet', 'service');
          expect(flows.sources).toHaveLength(3);
        },
      );

      test('a gateway reaches the nodes of its network by the LAN', () => {
        for (const family of FAMILIES)
          expect(lab.within('g1', 'ip', 'route', 'get', addressOf('w1', family))).toContain('dev eth0');
        expect(lab.within('g1', 'ip', 'route', 'get', addressOf('w1', 4), 'mark', '0x10')).not.toContain('dev eth0');
      });

      test.each(FAMILIES)('a node brings its own address out of its tunnel, and no other’s, IPv%i', (family) => {
        const bring = (gateway: NodeName, source: NodeName): void => {
          const packet = datagram(addressOf(source, family), OVERLAY.w2[family], new Uint8Array(16));
          send('x1', addressOf(gateway, 4), PORTS.vxlan, vxlan(packet, { mac: innerMac(addressOf(gateway, 4)) }));
        };
        const [own, others] = [counted('w2', 'inet', 'own'), counted('w2', 'inet', 'others')];
        const dropped = droppedAt('g1');
        bring('g1', 'w1');
        bring('g1', 'x1');
        expect(counted('w2', 'inet', 'own')).toBe(own + 1);
        expect(counted('w2', 'inet', 'others')).toBe(others);
        expect(droppedAt('g1')).toBe(dropped + 1);
      });

      test('20 of 20 connections survive a gateway of either site', async () => {
        const flows = preserved.flatMap(({ ofPod, ofNode }) => [ofPod, ofNode]);
        const alive = async (): Promise<number[]> => Promise.all(flows.map((each) => each.alive()));
        const all = Array(8).fill(FLOWS);
        expect(await alive()).toEqual(all);
        lab.cutOff('g1');
        await Promise.all((['w1', 'g2', 'h2'] as const).map((node) => lab.sees(node, { gone: ['g1'] })));
        expect(await alive()).toEqual(all);
        lab.cutOff('h2');
        await Promise.all((['w2', 'h1'] as const).map((node) => lab.sees(node, { gone: ['h2'] })));
        expect(await alive()).toEqual(all);
      }, 90_000);
    });

    describe('when a gateway of the version before comes back', () => {
      beforeAll(() => lab.apply(), 60_000);

      test('rule, routes and sets go', async () => {
        expect(table('h1')).toContain(addressOf('w1', 4));
        expect(table('h1')).toContain(addressOf('w1', 6));
        await lab.apply((node) => node !== 'g1');
        expect(rules('h1')).not.toContain('lookup 251');
        expect(table('h1')).toBe('');
        expect(lab.within('h1', 'nft', 'list', 'table', 'inet', 'unbounded')).not.toContain('transit');
      });

      test('and at an uninstall everything does', async () => {
        await lab.apply();
        expect(rules('h1')).toContain('lookup 251');
        await lab.clean('h1');
        expect(rules('h1')).not.toMatch(/lookup 25[12]\b/);
        expect(table('h1')).toBe('');
      });
    });

    /** Forged packets that a gateway has counted. */
    const droppedAt = (gateway: NodeName): number => {
      if (dataplane === 'ebpf') return lab.forgedAt(gateway);
      const counter = lab.within(gateway, 'nft', 'list', 'counter', 'inet', 'unbounded', 'forged_inner_source');
      return Number(/packets (\d+)/.exec(counter)![1]);
    };
  });
