import { ROUTE_SCOPES, type RouteScope } from './model/route.ts';

const NAMES = new Map<number, RouteScope>(
  Object.entries(ROUTE_SCOPES).map(([name, code]) => [code, name as RouteScope]),
);

/** User-defined scopes (1..199) count as global: nothing of ours uses them. */
export const scopeName = (code: number): RouteScope => NAMES.get(code) ?? 'global';
