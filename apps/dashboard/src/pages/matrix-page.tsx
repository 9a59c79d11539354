import { useCallback, useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { Age } from '../parts/age.tsx';
import { StateBadge } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { Names, NodeLink, SiteLink } from '../parts/links.tsx';
import { MatrixFilters } from '../parts/matrix-filters.tsx';
import { MatrixGrid } from '../parts/matrix-grid.tsx';
import { MatrixLegend } from '../parts/matrix-legend.tsx';
import { useMatrixPlace } from '../parts/matrix-place.ts';
import type { CellKind } from '../parts/matrix-row.tsx';
import { Page } from '../parts/page.tsx';
import { hrefOf } from '../view/address.ts';
import { ofAll } from '../view/format.ts';
import { cellLabel, cellText, matrixSites, measureOf, NO_REACH, reachTexts, SHAPES } from '../view/matrix.ts';
import type { ReachView } from '../view/types.ts';

const KIND: CellKind<ReachView> = {
  look: (reach, measure) => ({
    ...{ state: reach.state, isRelayed: reach.relayed > 0 },
    text: cellText(reach, measure),
  }),
  label: cellLabel,
};

/** To the nodes of the source; what is measured stays the same. */
const nodesHref = (from: string, to: string, show: string | undefined): string =>
  hrefOf(['matrix', from, to], show === undefined ? {} : { show });

interface DetailsProps {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly reach: ReachView | undefined;
}

/** An aggregator of an earlier version does not say. */
const sinceOf = ({ since }: ReachView) =>
  since === undefined ? [] : [['In this state, by this kind of path', <Age key="since" of={since} />] as const];

const Details = ({ from, to, reach }: DetailsProps) => {
  const [{ show }] = useQuery();
  if (from === undefined || to === undefined) return null;
  const facts = (reach ? reachTexts(reach) : []).map(([term, text]) => {
    if (term === 'State') return [term, <StateBadge key={term} state={text} />] as const;
    if (term === 'Via' && reach!.via.length > 0)
      return [term, <Names key={term} names={reach!.via} of={NodeLink} />] as const;
    return [term, text] as const;
  });
  return (
    <section aria-labelledby="details" className="card details">
      <h2 id="details">
        <SiteLink name={from} /> to <SiteLink name={to} />
      </h2>
      {reach ? <Facts facts={[...facts, ...sinceOf(reach)]} /> : <p>Unknown: {NO_REACH}.</p>}
      <p>
        <a href={nodesHref(from, to, show)}>By node: who of {from} reaches what</a> (Enter in the matrix)
      </p>
    </section>
  );
};

export const MatrixPage = () => {
  const sites = useView((view) => view.sites);
  const reach = useView((view) => view.reach);
  const [{ q, only, show }] = useQuery();
  const names = useMemo(() => matrixSites({ sites, reach }, { q, only }), [sites, reach, q, only]);
  const { active, onActive, onPoint, source, destination } = useMatrixPlace(names, names);
  const onOpen = useCallback(
    ([row, column]: readonly [number, number]) => {
      globalThis.location.hash = nodesHref(names[row]!, names[column]!, show);
    },
    [names, show],
  );
  return (
    <Page title="Reach by site">
      <MatrixFilters
        search="Sites (any of these words)"
        affected="sites with a way that is not whole, or relayed"
        output={`${ofAll(names.length, Object.keys(sites).length)} sites`}
      />
      <MatrixLegend states={Object.keys(SHAPES)} none="no report of it" />
      {names.length === 0 ? (
        <p>No site matches.</p>
      ) : (
        <div className="beside">
          <MatrixGrid
            label="Reach by site: rows are sources, columns destinations"
            values={reach}
            measure={measureOf(show)}
            kind={KIND}
            {...{ from: names, to: names, active, onActive, onOpen, onPoint }}
          />
          <Details from={source} to={destination} reach={reach[source ?? '']?.[destination ?? '']} />
        </div>
      )}
    </Page>
  );
};
