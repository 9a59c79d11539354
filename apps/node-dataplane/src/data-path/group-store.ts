/** Where a data path has its next-hop groups: in a pinned map, or among the kernel's routes. Threads are told of it by message. */
export type GroupStore = { readonly mapPin: string } | 'routes';
