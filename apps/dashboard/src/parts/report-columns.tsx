import { bytes, percent, roundTrip, UNKNOWN } from '../view/format.ts';
import {
  type GroupRow,
  groupUrgency,
  lossOf,
  mtuOf,
  pathsOf,
  type PeerRow,
  peerUrgency,
  rttOf,
  type SessionRow,
  worstOf,
  worstState,
} from '../view/report.ts';
import { Age } from './age.tsx';
import { StateBadge } from './badges.tsx';
import type { Column } from './data-table.tsx';
import { Names, NodeLink, SiteLink } from './links.tsx';

/** Columns of the tables of a node's page. */

const Health = ({ of }: { readonly of: PeerRow['health']['ipv4'] }) => {
  if (!of) return <span className="muted">not probed</span>;
  const { state, forwards } = of;
  return (
    <>
      <StateBadge state={state} />
      {forwards === false && <span className="error"> returns no echo</span>}
    </>
  );
};

const family = (name: 'ipv4' | 'ipv6', title: string): Column<PeerRow> => ({
  ...{ id: name, title, width: 10 },
  cell: ({ health }) => <Health of={health[name]} />,
  sortBy: ({ health }) => health[name] && peerUrgency(health[name].state),
});

export const PEER_COLUMNS: readonly Column<PeerRow>[] = [
  {
    id: 'name',
    title: 'Peer',
    isHeader: true,
    width: 13,
    cell: ({ name }) => <NodeLink name={name} />,
    sortBy: ({ name }) => name,
  },
  { id: 'state', title: 'State', width: 8, cell: (row) => <StateBadge state={worstState(row)} />, sortBy: worstOf },
  { id: 'protocol', title: 'Protocol', width: 7, cell: ({ protocol }) => protocol, sortBy: ({ protocol }) => protocol },
  family('ipv4', 'IPv4'),
  family('ipv6', 'IPv6'),
  { id: 'rtt', title: 'Round trip', width: 7, isNumber: true, cell: (row) => roundTrip(rttOf(row)), sortBy: rttOf },
  { id: 'loss', title: 'Loss', width: 6, isNumber: true, cell: (row) => percent(lossOf(row)), sortBy: lossOf },
  {
    id: 'mtu',
    title: 'Path MTU',
    width: 7,
    isNumber: true,
    cell: (row) => mtuOf(row) ?? 'as the device',
    sortBy: mtuOf,
  },
  { id: 'path', title: 'Path', width: 7, cell: pathsOf, sortBy: pathsOf },
];

export const SESSION_COLUMNS: readonly Column<SessionRow>[] = [
  {
    id: 'peer',
    title: 'Peer',
    isHeader: true,
    width: 13,
    cell: ({ peer }) => <NodeLink name={peer} />,
    sortBy: ({ peer }) => peer,
  },
  { id: 'device', title: 'Interface', width: 7, cell: ({ device }) => device, sortBy: ({ device }) => device },
  { id: 'path', title: 'Path', width: 6, cell: ({ path }) => path ?? 'Direct', sortBy: ({ path }) => path ?? 'Direct' },
  {
    id: 'reason',
    title: 'Why',
    width: 16,
    cell: ({ path, pathReason }) => pathReason ?? (path === undefined ? 'there is no relay' : UNKNOWN),
    sortBy: ({ pathReason }) => pathReason,
  },
  {
    ...{ id: 'since', title: 'Path since', width: 8 },
    cell: ({ path, pathSinceTime }) =>
      pathSinceTime === undefined ? path === undefined ? '' : UNKNOWN : <Age of={pathSinceTime} />,
    sortBy: ({ pathSinceTime }) => pathSinceTime,
  },
  {
    id: 'endpoint',
    title: 'Endpoint',
    width: 12,
    cell: ({ endpoint }) => endpoint ?? UNKNOWN,
    sortBy: ({ endpoint }) => endpoint,
  },
  {
    ...{ id: 'handshake', title: 'Last handshake', width: 8 },
    cell: ({ latestHandshakeTime }) =>
      latestHandshakeTime === undefined ? 'none yet' : <Age of={latestHandshakeTime} />,
    sortBy: ({ latestHandshakeTime }) => latestHandshakeTime,
  },
  {
    id: 'rx',
    title: 'Received',
    width: 6,
    isNumber: true,
    cell: ({ rxBytes }) => bytes(rxBytes),
    sortBy: ({ rxBytes }) => rxBytes,
  },
  {
    id: 'tx',
    title: 'Sent',
    width: 6,
    isNumber: true,
    cell: ({ txBytes }) => bytes(txBytes),
    sortBy: ({ txBytes }) => txBytes,
  },
];

export const GROUP_COLUMNS: readonly Column<GroupRow>[] = [
  { id: 'name', title: 'Group', isHeader: true, width: 11, cell: ({ name }) => name, sortBy: ({ name }) => name },
  {
    id: 'site',
    title: 'Site',
    width: 8,
    cell: ({ site }) => (site === undefined ? 'routed blocks' : <SiteLink name={site} />),
    sortBy: ({ site }) => site,
  },
  { id: 'family', title: 'Family', width: 5, cell: ({ family }) => family, sortBy: ({ family }) => family },
  {
    ...{ id: 'active', title: 'Active members', width: 16 },
    cell: ({ active }) =>
      active.length === 0 ? <StateBadge state="Unreachable" /> : <Names names={active} of={NodeLink} />,
    sortBy: groupUrgency,
  },
  {
    id: 'others',
    title: 'Others',
    width: 18,
    cell: ({ others }) => (others.length === 0 ? 'none' : others.join(', ')),
  },
];
