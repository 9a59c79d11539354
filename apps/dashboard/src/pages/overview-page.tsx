import { useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { useCut } from '../parts/cut.ts';
import { Choice, NameField, SearchField } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { EndedList, ProblemList } from '../parts/problem-list.tsx';
import { hrefOf } from '../view/address.ts';
import { count, ofAll } from '../view/format.ts';
import { filterProblems, orderedProblems, SEVERITIES } from '../view/problems.ts';
import { compareNames } from '../view/sort.ts';

const Tiles = () => {
  const { state, sites, nodes, reporting, gateways, problems } = useView((view) => view.summary);
  return (
    <ul className="tiles" aria-label="Summary">
      <li>
        <span>Cluster</span> <StateBadge state={state} />
      </li>
      <li>
        <a href={hrefOf(['sites'])}>Sites</a> <b>{count(sites)}</b>
      </li>
      <li>
        <a href={hrefOf(['nodes'])}>Nodes reporting</a> <b>{`${count(reporting)} of ${count(nodes)}`}</b>
      </li>
      <li>
        <a href={hrefOf(['pools'])}>Gateways</a> <b>{count(gateways)}</b>
      </li>
      {SEVERITIES.map((severity) => (
        <li key={severity}>
          <a href={hrefOf([], { severity })}>{severity[0]!.toUpperCase() + severity.slice(1)}</a>{' '}
          <b className={problems[severity] > 0 ? severity : undefined}>{count(problems[severity])}</b>
        </li>
      ))}
    </ul>
  );
};

const MOST_PROBLEMS = 50;
const MOST_ENDED = 10;

const Problems = () => {
  const problems = useView((view) => view.problems);
  const order = useView((view) => view.order);
  const sites = useView((view) => view.sites);
  const [{ severity, site, q }] = useQuery();
  const all = useMemo(() => orderedProblems({ problems, order }), [problems, order]);
  const found = useMemo(() => filterProblems(all, { severity, site, q }), [all, severity, site, q]);
  const { shown, isCut, showAll } = useCut(found, MOST_PROBLEMS);
  const names = useMemo(() => Object.keys(sites).sort(compareNames), [sites]);
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Problems ({ofAll(shown.length, all.length)})</h2>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search" />
        <Choice label="Severity" name="severity" options={SEVERITIES} />
        <NameField label="Site" name="site" names={names} />
      </form>
      <ProblemList
        problems={shown}
        empty={all.length === 0 ? 'Nothing is wrong, of what nodes report.' : 'No problem matches these filters.'}
      />
      {isCut && (
        <button type="button" onClick={showAll}>
          Show all {count(found.length)}
        </button>
      )}
    </section>
  );
};

const Ended = () => {
  const ended = useView((view) => view.ended);
  const [{ severity, site, q }] = useQuery();
  const found = useMemo(() => filterProblems(ended, { severity, site, q }), [ended, severity, site, q]);
  const { shown, isCut, showAll } = useCut(found, MOST_ENDED);
  return (
    <section aria-labelledby="ended">
      <h2 id="ended">Ended lately ({ofAll(shown.length, ended.length)})</h2>
      {found.length === 0 && <p>None.</p>}
      <EndedList problems={shown} />
      {isCut && (
        <button type="button" onClick={showAll}>
          Show all {count(found.length)}
        </button>
      )}
    </section>
  );
};

export const OverviewPage = () => (
  <Page title="Overview">
    <Tiles />
    <Problems />
    <Ended />
  </Page>
);
