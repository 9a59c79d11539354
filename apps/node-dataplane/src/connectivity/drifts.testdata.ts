import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LINK_ALIAS, PIN_FOLDER, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { DETACHMENTS, hasProgram, json, run } from './attached-programs.testdata.ts';

/** What the dataplane has made in the namespace, as text, and each way in which somebody may change it. */

export const FORWARD = '/proc/sys/net/ipv4/ip_forward';
const mapPin = (name: string): string => join(PIN_FOLDER, 'maps', name);
const ENDPOINTS_MAP = mapPin('unbounded_endpoints_v4');

export const anchorHasProgram = (): boolean => hasProgram('unbounded0', 'egress');

/** Entries of the map of IPv4 endpoints. */
export const entryCount = (): number => sizeOf('unbounded_endpoints_v4');

export const groupCount = (): number => sizeOf('unbounded_nexthop_groups');

const sizeOf = (map: string): number =>
  (json('bpftool', '-j', 'map', 'dump', 'pinned', mapPin(map)) as unknown[]).length;

/** A table as nft lists it, its chains at the end, by name. */
const chainsByName = (listing: string): string => {
  const chain = /^\tchain .*\n(?:\t\t.*\n)*\t\}\n\n?/gm;
  const chains = listing.match(chain) ?? [];
  return `${listing.replaceAll(chain, '')}${chains
    .map((text) => text.trimEnd())
    .sort()
    .join('\n')}`;
};

/** Everything of ours as text that is the same for the same state; indexes of devices are none of it. */
export const state = (): string => {
  type Shown = { ifname: string; ifalias?: string; mtu: number; address: string; linkinfo?: { info_kind?: string } };
  const links = (json('ip', '-d', '-j', 'link') as Shown[]).filter(({ ifalias }) => ifalias === LINK_ALIAS);
  // Without what counters say; by family: a table that was written anew is listed last.
  // Sets of intervals come beside those that are in use, under names that take turns; chains that stand stay where they are listed.
  const tables = ['inet', 'arp', 'bridge']
    .map((family) => run('nft', '-s', 'list', 'ruleset', family).replaceAll(/\b(\w+_ip6?)_[bc]\b/g, '$1'))
    .flatMap((listing) => listing.split(/^(?=table )/m).map(chainsByName))
    .join('');
  return [
    ...links
      .map(({ ifname, mtu, address, linkinfo }) => {
        const isGiven = ifname === 'vxlan0'; // the MAC of the others is the kernel's choice
        return `${ifname} ${linkinfo?.info_kind} ${mtu} ${isGiven ? address : ''}`;
      })
      .sort(),
    ...run('ip', '-br', '-4', 'addr')
      .split('\n')
      .map((line) => line.replace(/@\S+/, ''))
      .sort(),
    ...run('ip', 'route', 'show', 'proto', String(ROUTE_PROTOCOL)).split('\n').sort(),
    tables,
    `forwarding ${readFileSync(FORWARD, 'utf8').trim()}`,
    existsSync(ENDPOINTS_MAP) ? String(entryCount()) : 'no map',
    links.some(({ ifname }) => ifname === 'unbounded0') ? `program ${anchorHasProgram()}` : 'no anchor',
    links.some(({ ifname }) => ifname === 'vxlan0') ? `source check ${hasProgram('vxlan0', 'ingress')}` : 'no tunnel',
  ].join('\n');
};

/** Each way in which somebody may change what is ours. */
export const DRIFTS: Readonly<Record<string, () => unknown>> = {
  'a route is deleted': () => run('ip', 'route', 'del', '100.66.0.0/16'),
  'a route of ours leads elsewhere': () =>
    run('ip', 'route', 'replace', '100.66.0.0/16', 'via', '10.1.0.1', 'proto', String(ROUTE_PROTOCOL)),
  'an address is deleted': () => run('ip', 'addr', 'del', '100.65.30.1/32', 'dev', 'vxlan0'),
  'an address is added': () => run('ip', 'addr', 'add', '192.0.2.9/32', 'dev', 'vxlan0'),
  'an MTU is changed': () => run('ip', 'link', 'set', 'unbounded0', 'mtu', '1000'),
  'a MAC is changed': () => run('ip', 'link', 'set', 'vxlan0', 'address', '02:00:00:00:00:01'),
  'a device is down': () => run('ip', 'link', 'set', 'unbounded0', 'down'),
  'an agent died before a device had its alias': () => run('ip', 'link', 'set', 'dev', 'vxlan0', 'alias', ''),
  'a tunnel device is deleted': () => run('ip', 'link', 'del', 'vxlan0'),
  'the anchor is deleted': () => run('ip', 'link', 'del', 'unbounded0'),
  'the table is deleted': () => run('nft', 'delete', 'table', 'inet', 'unbounded'),
  'a rule is added to the table': () => run('nft', 'add', 'rule', 'inet', 'unbounded', 'postrouting', 'drop'),
  'a map entry is deleted': () =>
    run('bpftool', 'map', 'delete', 'pinned', ENDPOINTS_MAP, 'key', '24', '0', '0', '0', '100', '65', '31', '0'),
  'a tunnel device is down': () => run('ip', 'link', 'set', 'vxlan0', 'down'),
  'a chain is flushed': () => run('nft', 'flush', 'chain', 'inet', 'unbounded', 'leaks'),
  'a chain is deleted': () => run('nft', 'delete', 'chain', 'inet', 'unbounded', 'leaving'),
  'a set is emptied': () => {
    const [, name] = /set (overlay_ip(?:_[bc])?) \{/.exec(run('nft', 'list', 'table', 'inet', 'unbounded'))!;
    run('nft', 'flush', 'set', 'inet', 'unbounded', name!);
  },
  'the table of ARP is deleted': () => run('nft', 'delete', 'table', 'arp', 'unbounded'),
  'the ruleset is flushed': () => {
    run('nft', 'flush', 'ruleset');
    run('nft', 'add', 'table', 'inet', 'somebody');
  },
  ...DETACHMENTS,
  'forwarding is off': () => writeFileSync(FORWARD, '0'),
};
