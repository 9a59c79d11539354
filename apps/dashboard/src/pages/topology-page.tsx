import { type Edge, Handle, type Node, type NodeProps, Position, ReactFlow, Controls } from '@xyflow/react';
import { memo, useCallback, useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { StateBadge, toneOf } from '../parts/badges.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { NameField } from '../parts/filters.tsx';
import { Page } from '../parts/page.tsx';
import { hrefOf } from '../view/address.ts';
import { ofAll } from '../view/format.ts';
import { SHAPES } from '../view/matrix.ts';
import { urgencyOf } from '../view/nodes.ts';
import { compareNames } from '../view/sort.ts';
import { type Link, linksOf, type Place, placesOf } from '../view/topology.ts';

type PlaceNode = Node<{ readonly place: Place; readonly isChosen: boolean }, 'place'>;

const NODE_SHAPES: Readonly<Record<string, string>> = { Healthy: '●', Degraded: '◐', Unreachable: '✕', Unknown: '?' };

const PlaceBox = memo(function PlaceBox({ data: { place, isChosen } }: NodeProps<PlaceNode>) {
  const { kind, name, state } = place;
  return (
    <div className={`place ${kind} ${toneOf(state)} ${isChosen ? 'chosen' : ''}`} title={`${kind} ${name}: ${state}`}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span aria-hidden="true">{NODE_SHAPES[state] ?? '?'}</span> {name}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
});
const NODE_TYPES = { place: PlaceBox };

const nodeOf = (place: Place, chosen: string | undefined): PlaceNode => ({
  ...{ id: place.id, type: 'place', position: { x: place.x, y: place.y }, width: 150, height: 32 },
  data: { place, isChosen: place.kind === 'site' && place.name === chosen },
  ariaLabel: `${place.kind} ${place.name}: ${place.state}`,
});

const edgeOf = ({ id, from, to, state, isRelayed, text }: Link): Edge => ({
  ...{ id: `${from} ${to} ${id}`, source: from, target: to, type: 'straight', focusable: false },
  className: `link ${toneOf(state)} ${state.toLowerCase()}`,
  ariaLabel: `${from} to ${to}: ${state}, ${text}`,
  ...(state === 'Reachable' && !isRelayed ? {} : { label: `${SHAPES[state]}${isRelayed ? ' R' : ''}` }),
});

const short = (id: string): string => id.replace('/', ' ');
const COLUMNS: readonly Column<Link>[] = [
  { id: 'from', title: 'From', isHeader: true, width: 12, cell: ({ from }) => short(from), sortBy: ({ from }) => from },
  { id: 'to', title: 'To', width: 12, cell: ({ to }) => short(to), sortBy: ({ to }) => to },
  {
    id: 'state',
    title: 'State',
    width: 9,
    cell: ({ state }) => <StateBadge state={state} />,
    sortBy: ({ state }) => urgencyOf(state),
  },
  { id: 'text', title: 'What', width: 18, cell: ({ text }) => text, sortBy: ({ text }) => text },
];
const USUAL = { by: 'state', isDescending: false };
const idOf = ({ id, from, to }: Link): string => `${from} ${to} ${id}`;

const usePicture = (chosen: string | undefined) => {
  const sites = useView((view) => view.sites);
  const pools = useView((view) => view.pools);
  const reach = useView((view) => view.reach);
  const known = chosen !== undefined && Object.hasOwn(sites, chosen) ? chosen : undefined;
  const nodes = useMemo(() => placesOf({ sites, pools }).map((place) => nodeOf(place, known)), [sites, pools, known]);
  const links = useMemo(() => linksOf({ sites, pools, reach }, known), [sites, pools, reach, known]);
  const edges = useMemo(() => links.shown.map(edgeOf), [links]);
  const names = useMemo(() => Object.keys(sites).sort(compareNames), [sites]);
  return { nodes, edges, links, names };
};

export const TopologyPage = () => {
  const [{ site }, change] = useQuery();
  const { nodes, edges, links, names } = usePicture(site);
  const choose = useCallback(
    (node: PlaceNode) => {
      const { kind, name } = node.data.place;
      if (kind === 'site') change({ site: name });
    },
    [change],
  );
  return (
    <Page title="Topology">
      <p>
        Pools stand in the middle, sites to their left and right. Lines between sites are those that do not work whole
        or go over the relay, except of sites that are out altogether; of a chosen site, all of its own. The same in
        text: the table below, and the <a href={hrefOf(['matrix'])}>matrix</a>.
      </p>
      <form className="filters" onSubmit={(event) => event.preventDefault()}>
        <NameField label="Chosen site" name="site" names={names} />
        {site !== undefined && <a href={hrefOf(['sites', site])}>Its page</a>}
        <output>{ofAll(links.shown.length, links.total)} lines</output>
      </form>
      <div className="picture" role="group" aria-label="Picture of sites and pools">
        <ReactFlow
          {...{ nodes, edges }}
          nodeTypes={NODE_TYPES}
          onNodeClick={(_, node) => choose(node)}
          fitView
          minZoom={0.1}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          preventScrolling={false}
          zoomOnScroll={false}
        >
          <Controls showInteractive={false} />
        </ReactFlow>
      </div>
      <h2>Lines</h2>
      <DataTable
        caption="Lines of the picture"
        columns={COLUMNS}
        usualSort={USUAL}
        nameOf={idOf}
        rows={links.shown}
        empty="None."
      />
    </Page>
  );
};
