export type ClusterView = { readonly nodes: Readonly<Record<string, unknown>> };
export type NodeReport = { readonly node: string };
export type Push = unknown;
