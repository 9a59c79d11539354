import { useMemo } from 'react';
import { useView } from '../app/session.ts';
import { hrefOf } from '../view/address.ts';
import { percent, roundTrip, UNKNOWN } from '../view/format.ts';
import { mtuText, pathText, viaText } from '../view/matrix.ts';
import { urgencyOf } from '../view/nodes.ts';
import { compareNames } from '../view/sort.ts';
import type { ReachView } from '../view/types.ts';
import { StateBadge } from './badges.tsx';
import { type Column, DataTable } from './data-table.tsx';
import { Names, NodeLink, SiteLink } from './links.tsx';

/** The row and the column of one site in the matrix, as a table. */

interface Row {
  /** The site of the page. */
  readonly site: string;
  /** The other one. */
  readonly name: string;
  readonly there: ReachView | undefined;
  readonly back: ReachView | undefined;
}

const stateOf = (reach: ReachView | undefined): string => reach?.state ?? 'Unknown';
const Via = ({ of }: { readonly of: ReachView | undefined }) => {
  if (of && of.via.length > 0) return <Names names={of.via} of={NodeLink} />;
  return of ? viaText(of) : UNKNOWN;
};

const columnsOf = (way: 'there' | 'back', word: string): Column<Row>[] => [
  {
    id: way,
    title: word,
    width: 9,
    cell: (row) => <StateBadge state={stateOf(row[way])} />,
    sortBy: (row) => urgencyOf(stateOf(row[way])),
  },
  {
    id: `${way}-rtt`,
    title: 'Round trip',
    width: 6,
    isNumber: true,
    cell: (row) => roundTrip(row[way]?.rttMs),
    sortBy: (row) => row[way]?.rttMs,
  },
  {
    id: `${way}-loss`,
    title: 'Loss',
    width: 6,
    isNumber: true,
    cell: (row) => percent(row[way]?.lossRatio),
    sortBy: (row) => row[way]?.lossRatio,
  },
];

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    title: 'Site',
    isHeader: true,
    width: 11,
    cell: ({ name }) => <SiteLink name={name} />,
    sortBy: ({ name }) => name,
  },
  ...columnsOf('there', 'To it'),
  {
    id: 'mtu',
    title: 'Path MTU',
    width: 7,
    isNumber: true,
    cell: ({ there }) => (there ? mtuText(there) : UNKNOWN),
    sortBy: ({ there }) => there?.pathMtuBytes,
  },
  {
    id: 'path',
    title: 'Path',
    width: 9,
    cell: ({ there }) => (there ? pathText(there) : UNKNOWN),
    sortBy: ({ there }) => there?.relayed,
  },
  { id: 'via', title: 'Via', width: 12, cell: ({ there }) => <Via of={there} /> },
  ...columnsOf('back', 'From it'),
  {
    ...{ id: 'nodes', title: 'By node', width: 8 },
    cell: ({ site, name }) => (
      <>
        <a href={hrefOf(['matrix', site, name])} aria-label={`to it, ${name}, by node`}>
          to it
        </a>
        ,{' '}
        <a href={hrefOf(['matrix', name, site])} aria-label={`from it, ${name}, by node`}>
          from it
        </a>
      </>
    ),
  },
];
const USUAL = { by: 'there', isDescending: false };
const nameOf = ({ name }: Row): string => name;

export const SiteReach = ({ site }: { readonly site: string }) => {
  const reach = useView((view) => view.reach);
  const rows = useMemo(() => {
    const names = new Set(Object.keys(reach).filter((from) => reach[from]![site] !== undefined));
    for (const to of Object.keys(reach[site] ?? {})) names.add(to);
    return [...names]
      .sort(compareNames)
      .map((name): Row => ({ site, name, there: reach[site]?.[name], back: reach[name]?.[site] }));
  }, [reach, site]);
  return (
    <section aria-labelledby="reach">
      <h2 id="reach">Reach</h2>
      <p>
        As its own nodes, and those of the other sites, probe.{' '}
        <a href={hrefOf(['matrix'], { from: site, to: site })}>In the matrix</a>,{' '}
        <a href={hrefOf(['topology'], { site })}>in the picture</a>.
      </p>
      <DataTable
        caption="Reach to and from other sites"
        columns={COLUMNS}
        usualSort={USUAL}
        sortName="reach"
        empty="Unknown: no node reports of it."
        {...{ rows, nameOf }}
      />
    </section>
  );
};
