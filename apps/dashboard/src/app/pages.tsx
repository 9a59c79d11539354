import { type ComponentType, lazy, memo, Suspense } from 'react';
import { EgressPage } from '../pages/egress-page.tsx';
import { MatrixPage } from '../pages/matrix-page.tsx';
import { NodeMatrixPage } from '../pages/node-matrix-page.tsx';
import { NodePage } from '../pages/node-page.tsx';
import { NodesPage } from '../pages/nodes-page.tsx';
import { OverviewPage } from '../pages/overview-page.tsx';
import { PoolsPage } from '../pages/pools-page.tsx';
import { SitePage } from '../pages/site-page.tsx';
import { SitesPage } from '../pages/sites-page.tsx';
import { Page } from '../parts/page.tsx';
import { hrefOf } from '../view/address.ts';
import { useAddress } from './address.ts';

const TopologyPage = lazy(async () => ({ default: (await import('../pages/topology-page.tsx')).TopologyPage }));

const LISTS: Readonly<Record<string, ComponentType>> = {
  sites: SitesPage,
  matrix: MatrixPage,
  pools: PoolsPage,
  nodes: NodesPage,
  topology: TopologyPage,
  egress: EgressPage,
};

const NotFound = () => (
  <Page title="There is no such page">
    <p>
      Go to the <a href={hrefOf([])}>overview</a>.
    </p>
  </Page>
);

const pageOf = ([section, name, other]: readonly string[]) => {
  if (section === undefined) return <OverviewPage />;
  // Another object is another page, and nothing of the former one is kept.
  if (section === 'nodes' && name !== undefined) return <NodePage key={name} name={name} />;
  if (section === 'sites' && name !== undefined) return <SitePage key={name} name={name} />;
  if (section === 'matrix' && name !== undefined && other !== undefined)
    return <NodeMatrixPage key={JSON.stringify([name, other])} source={name} destination={other} />;
  const List = Object.hasOwn(LISTS, section) && name === undefined ? LISTS[section]! : NotFound;
  return <List />;
};

/** Drawn anew by what it shows, and not by each answer of the server that nothing has changed. */
export const Pages = memo(function Pages() {
  const { path } = useAddress();
  return <Suspense fallback={<p role="status">Loading</p>}>{pageOf(path)}</Suspense>;
});
