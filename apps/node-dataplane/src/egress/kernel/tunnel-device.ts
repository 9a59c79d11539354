import { sectionAlias } from '@unbounded/config/ownership';
import type { Link, Neighbour, NeighbourSpec, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { removeDevice } from '../../kernel/links.ts';
import { writeSetting } from '../../kernel/proc-sys.ts';
import type { TunnelSpec } from '../plan/tunnel.plan.ts';
import { deleteAll } from '../../kernel/delete-all.ts';

/** The device of the tunnel, and its far ends. */

const EGRESS_ALIAS = sectionAlias('egress');

/**
 * Answers come from where the routes lead by another device, so the reverse-path filter is loose; and it looks up the way back of an answer
 * as a packet of its pod, which without its mark reaches the cluster alone. Nobody behind the tunnel tells the node routes.
 */
const settle = ({ name }: TunnelSpec): void => {
  writeSetting(`net/ipv4/conf/${name}/rp_filter`, '2');
  writeSetting(`net/ipv4/conf/${name}/src_valid_mark`, '1');
  writeSetting(`net/ipv6/conf/${name}/disable_ipv6`, '0');
  writeSetting(`net/ipv6/conf/${name}/accept_ra`, '0');
  writeSetting(`net/ipv6/conf/${name}/addr_gen_mode`, '1');
};

const isAsWanted = ({ kind, mac }: Link, spec: TunnelSpec): boolean =>
  kind?.kind === 'vxlan' &&
  mac === spec.mac &&
  kind.vni === spec.kind.vni &&
  kind.local === spec.kind.local &&
  kind.port === spec.kind.port;

const create = async (net: RouteSocket, { name, mac, mtu, kind }: TunnelSpec): Promise<Link> =>
  net.links.create({ name, mac, mtu, kind, arp: false, alias: EGRESS_ALIAS });

const ensureAddress = async (net: RouteSocket, link: number, wanted: string | undefined): Promise<void> => {
  const present = (await net.addresses.list({ link })).filter(({ address }) => !address.includes(':'));
  if (wanted !== undefined && !present.some(({ address }) => address === wanted))
    await net.addresses.replace({ link, address: wanted });
  for (const entry of present) if (entry.address !== wanted) await net.addresses.delete(entry);
};

const foreign = (name: string): Problem => ({
  reason: 'ForeignLink',
  message: `a link named ${name} exists that is not ours (its alias is not "${EGRESS_ALIAS}"): it is left alone; rename or remove it, or pods with egress addresses reach the cluster alone`,
});

/** Up, and as wanted; one with other ends is made anew. */
export const ensureTunnel = async (
  net: RouteSocket,
  spec: TunnelSpec,
): Promise<{ readonly link?: Link; readonly problems: readonly Problem[] }> => {
  let found = await net.links.get(spec.name);
  if (found && found.alias !== EGRESS_ALIAS) return { problems: [foreign(spec.name)] };
  if (found && !isAsWanted(found, spec)) {
    await removeDevice(net, found);
    found = undefined;
  }
  const link = found ?? (await create(net, spec));
  settle(spec);
  await ensureAddress(net, link.index, spec.address);
  if (!link.up || link.mtu !== spec.mtu) await net.links.modify(link.index, { up: true, mtu: spec.mtu });
  return { link, problems: [] };
};

const keyOf = ({ family, address, mac }: NeighbourSpec): string => `${family} ${address} ${mac}`;

const isOfTunnel = ({ link, address, state }: Neighbour, index: number): boolean =>
  link === index && address !== undefined && state === 'permanent';

/** Adds what is missing; takes away what is not wanted when that is called for. */
export const ensureFarEnds = async (
  net: RouteSocket,
  link: number,
  wanted: readonly NeighbourSpec[],
): Promise<{ removeStale(): Promise<void> }> => {
  const lists = await Promise.all(([4, 6, 'bridge'] as const).map((family) => net.neighbours.list({ family, link })));
  const present = lists.flat().filter((entry) => isOfTunnel(entry, link));
  const known = new Set(present.map(keyOf));
  const missing = wanted.filter((entry) => !known.has(keyOf(entry)));
  const results = await net.neighbours.apply(missing.map((value) => ({ op: 'replace' as const, value })));
  for (const result of results) if (!result.ok) throw result.error;
  return {
    async removeStale() {
      const kept = new Set(wanted.map(keyOf));
      const stale = present.filter((entry) => !kept.has(keyOf(entry)));
      await deleteAll(net.neighbours, stale);
    },
  };
};
