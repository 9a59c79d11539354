import { type ComponentType, lazy, Suspense } from 'react';
import { EgressPage } from '../pages/egress-page.tsx';
import { MatrixPage } from '../pages/matrix-page.tsx';
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

const pageOf = (section: string | undefined, name: string | undefined) => {
  if (section === undefined) return <OverviewPage />;
  // Another object is another page, and nothing of the former one is kept.
  if (section === 'nodes' && name !== undefined) return <NodePage key={name} name={name} />;
  if (section === 'sites' && name !== undefined) return <SitePage key={name} name={name} />;
  const List = Object.hasOwn(LISTS, section) && name === undefined ? LISTS[section]! : NotFound;
  return <List />;
};

export const Pages = () => {
  const [section, name] = useAddress().path;
  return <Suspense fallback={<p role="status">Loading</p>}>{pageOf(section, name)}</Suspense>;
};
