import { useMemo } from 'react';
import { useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { DataTable } from '../parts/data-table.tsx';
import { Facts } from '../parts/facts.tsx';
import { NODE_COLUMNS_OF_SITE, NODE_SORT, nodeName } from '../parts/node-columns.tsx';
import { Page } from '../parts/page.tsx';
import { ProblemList } from '../parts/problem-list.tsx';
import { SiteReach } from '../parts/site-reach.tsx';
import { hrefOf } from '../view/address.ts';
import { count } from '../view/format.ts';
import { nodeRows } from '../view/nodes.ts';
import { filterProblems, orderedProblems } from '../view/problems.ts';

const SiteProblems = ({ name }: { readonly name: string }) => {
  const problems = useView((view) => view.problems);
  const order = useView((view) => view.order);
  const found = useMemo(
    () => filterProblems(orderedProblems({ problems, order }), { site: name }),
    [problems, order, name],
  );
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Problems that affect it ({count(found.length)})</h2>
      <ProblemList problems={found} empty="None, of what nodes report." />
    </section>
  );
};

const SitePools = ({ name }: { readonly name: string }) => {
  const pools = useView((view) => view.pools);
  const its = Object.entries(pools).filter(([, { connectedSites }]) => connectedSites.includes(name));
  return (
    <section aria-labelledby="pools">
      <h2 id="pools">Pools that connect it ({count(its.length)})</h2>
      {its.length === 0 && <p>None.</p>}
      <ul>
        {its.map(([pool, { state, gateways }]) => (
          <li key={pool}>
            <a href={hrefOf(['pools'], { q: pool })}>{pool}</a> <StateBadge state={state} />{' '}
            {count(Object.values(gateways).filter(({ activeFor }) => activeFor.includes(name)).length)} of{' '}
            {count(Object.keys(gateways).length)} gateways active for it
          </li>
        ))}
      </ul>
    </section>
  );
};

const SiteNodes = ({ name }: { readonly name: string }) => {
  const nodes = useView((view) => view.nodes);
  const rows = useMemo(() => nodeRows(nodes).filter(({ site }) => site === name), [nodes, name]);
  return (
    <section aria-labelledby="nodes">
      <h2 id="nodes">Nodes ({count(rows.length)})</h2>
      <DataTable
        caption={`Nodes of site ${name}`}
        columns={NODE_COLUMNS_OF_SITE}
        usualSort={NODE_SORT}
        nameOf={nodeName}
        empty="It has no nodes."
        rows={rows}
      />
    </section>
  );
};

export const SitePage = ({ name }: { readonly name: string }) => {
  const site = useView(({ sites }) => (Object.hasOwn(sites, name) ? sites[name] : undefined));
  if (!site) return <Page title={`Site ${name}`}>There is no such site now.</Page>;
  const { state, nodes, reporting, gateways } = site;
  return (
    <Page title={`Site ${name}`}>
      <Facts
        facts={[
          ['State', <StateBadge key="state" state={state} />],
          ['Nodes reporting', `${count(reporting)} of ${count(nodes)}`],
          ['Gateways', count(gateways)],
        ]}
      />
      <SiteProblems name={name} />
      <SitePools name={name} />
      <SiteReach site={name} />
      <SiteNodes name={name} />
    </Page>
  );
};
