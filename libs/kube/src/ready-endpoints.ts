import type { EndpointSlice } from './objects.ts';

/** Endpoints that take connections, each with the ports of its slice. */
export const readyEndpoints = (slices: readonly EndpointSlice[]) =>
  slices.flatMap(({ endpoints, ports }) =>
    (endpoints ?? [])
      .filter(({ conditions }) => conditions?.ready !== false)
      .map(({ nodeName, addresses }) => ({ nodeName, addresses, ports: ports ?? [] })),
  );
