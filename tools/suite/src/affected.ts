/** Which specs a change can concern: those of the projects that it touches and of all that depend on them, by Nx's project graph. */

/** What `nx graph --file=NAME.json` writes. */
export interface ProjectGraph {
  readonly nodes: Readonly<Record<string, { readonly data: { readonly root: string } }>>;
  readonly dependencies: Readonly<Record<string, readonly { readonly target: string }[]>>;
}

/**
 * What specs of a package start or read by path. Edges of Nx's graph would be circles for the layer rule, and would concern
 * whatever uses these packages, not their specs alone.
 */
export const STARTED_BY_PATH: Readonly<Record<string, readonly string[]>> = {
  'apps/node-dataplane': ['apps/node-keeper', 'apps/relay'],
  'apps/node-keeper': ['apps/relay'],
  'libs/relay-client': ['apps/relay'],
  'libs/testing': [
    ...['apps/cidr-allocator', 'apps/gateway-health', 'apps/node-dataplane', 'apps/node-keeper', 'apps/relay'],
    ...['apps/site-membership', 'apps/static-egress', 'apps/status-aggregator'],
    ...['apps/l2-networks', 'apps/tailnet-registrar', 'apps/tailnet'],
  ],
  'tools/fuzz': [
    ...['apps/cni', 'apps/node-dataplane', 'apps/relay', 'bpf', 'libs/bpf-maps', 'libs/health', 'libs/keeper-protocol'],
    ...['libs/libbpf-ts', 'libs/membership', 'libs/netlink', 'libs/nftables', 'libs/relay-protocol', 'libs/topology'],
    ...['apps/status-aggregator', 'libs/status', 'libs/wireguard'],
  ],
};

/** The root of the workspace is a project, too: its files configure all others. */
const WORKSPACE = '.';
/** Reads every document. */
const REPOSITORY_TESTS = 'tools/repo';

const isDocumentAtTop = (file: string): boolean => /^[^/]+\.md$/.test(file);

/** The root of the project that holds a file: the longest that is a folder above it. */
const rootOf = (roots: readonly string[], file: string): string =>
  roots
    .filter((root) => file.startsWith(`${root}/`))
    .toSorted((a, b) => b.length - a.length)
    .at(0) ?? (isDocumentAtTop(file) ? REPOSITORY_TESTS : WORKSPACE);

/**
 * Root folders of the projects whose specs a change of these files can concern, sorted.
 * @param files paths from the top of the tree
 */
export const affectedRoots = ({ nodes, dependencies }: ProjectGraph, files: readonly string[]): string[] => {
  const roots = Object.values(nodes).map(({ data }) => data.root);
  const touched = new Set(files.map((file) => rootOf(roots, file)));
  if (touched.has(WORKSPACE)) return roots.filter((root) => root !== WORKSPACE).sort();
  const affected = new Set(Object.keys(nodes).filter((name) => touched.has(nodes[name]!.data.root)));
  for (const name of affected)
    // A set that grows while it is read is read to its end.
    for (const [dependent, on] of Object.entries(dependencies))
      if (on.some(({ target }) => target === name)) affected.add(dependent);
  const found = new Set([...affected].map((name) => nodes[name]!.data.root));
  for (const root of roots) if (STARTED_BY_PATH[root]?.some((other) => found.has(other))) found.add(root);
  found.delete(WORKSPACE);
  return [...found].sort();
};
