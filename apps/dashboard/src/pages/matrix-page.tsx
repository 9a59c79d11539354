import { useCallback, useMemo, useState } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { Choice, SearchField } from '../parts/filters.tsx';
import { Names, NodeLink, SiteLink } from '../parts/links.tsx';
import { MatrixGrid } from '../parts/matrix-grid.tsx';
import { Page } from '../parts/page.tsx';
import { ofAll } from '../view/format.ts';
import { matrixSites, measureOf, NO_REACH, reachTexts, SHAPES } from '../view/matrix.ts';
import type { ReachView } from '../view/types.ts';

const MEASURES = [
  ['rtt', 'Round trip (ms)'],
  ['loss', 'Loss (%)'],
  ['mtu', 'Path MTU (bytes)'],
  ['path', 'Direct (D) or relayed (R)'],
] as const;
const ONLY = [['affected', 'sites with a way that is not whole, or relayed']] as const;

const Legend = () => (
  <p className="muted">
    {Object.entries(SHAPES).map(([state, shape]) => (
      <span key={state} className="legend">
        <span aria-hidden="true">{shape}</span> {state}
      </span>
    ))}
    <span className="legend">
      <span aria-hidden="true">–</span> no report of it
    </span>
    <span className="legend">
      <sup>R</sup> relayed, some or all
    </span>
  </p>
);

const Details = ({
  from,
  to,
  reach,
}: {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly reach: ReachView | undefined;
}) => {
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
      {reach ? <Facts facts={facts} /> : <p>Unknown: {NO_REACH}.</p>}
    </section>
  );
};

const indexOf = (names: readonly string[], name: string | undefined): number =>
  name === undefined ? 0 : Math.max(0, names.indexOf(name));

export const MatrixPage = () => {
  const sites = useView((view) => view.sites);
  const reach = useView((view) => view.reach);
  const [{ q, only, show, from, to }, change] = useQuery();
  const [pointed, setPointed] = useState<readonly [number, number]>();
  const names = useMemo(() => matrixSites({ sites, reach }, { q, only }), [sites, reach, q, only]);
  const active = useMemo(() => [indexOf(names, from), indexOf(names, to)] as const, [names, from, to]);
  const onActive = useCallback(
    ([row, column]: readonly [number, number]) => change({ from: names[row], to: names[column] }),
    [names, change],
  );
  const [row, column] = pointed ?? active;
  const [source, destination] = [names[row], names[column]];
  return (
    <Page title="Reach by site">
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Sites (any of these words)" />
        <Choice label="Show" name="show" options={MEASURES} all="State" />
        <Choice label="Only" name="only" options={ONLY} />
        <output>{ofAll(names.length, Object.keys(sites).length)} sites</output>
      </form>
      <Legend />
      {names.length === 0 ? (
        <p>No site matches.</p>
      ) : (
        <div className="beside">
          <MatrixGrid measure={measureOf(show)} onPoint={setPointed} {...{ names, reach, active, onActive }} />
          <Details from={source} to={destination} reach={reach[source ?? '']?.[destination ?? '']} />
        </div>
      )}
    </Page>
  );
};
