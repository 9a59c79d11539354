import type { ResultAddition } from './hook.port.ts';

/** The result of the plugins before ours in the list, and of ADD (CNI specification 1.1.0, section "ADD Success"). */
export interface CniResult {
  readonly interfaces?: readonly { readonly name?: string; readonly mac?: string; readonly sandbox?: string }[];
  readonly ips?: readonly { readonly address?: string; readonly interface?: number }[];
  readonly routes?: readonly { readonly dst?: string }[];
}

/** What hooks add stands behind what is there, in their order; indexes of interfaces are counted anew. */
export const extendResult = (result: CniResult, additions: readonly ResultAddition[]): CniResult => {
  let extended = result;
  for (const { interfaces = [], ips = [], routes = [] } of additions) {
    const first = extended.interfaces?.length ?? 0;
    extended = {
      ...extended,
      ...(interfaces.length > 0 && { interfaces: [...(extended.interfaces ?? []), ...interfaces] }),
      ...(ips.length > 0 && {
        ips: [
          ...(extended.ips ?? []),
          ...ips.map((ip) => (ip.interface === undefined ? ip : { ...ip, interface: first + ip.interface })),
        ],
      }),
      ...(routes.length > 0 && { routes: [...(extended.routes ?? []), ...routes] }),
    };
  }
  return extended;
};

/** As readers of that version know it: before 1.0.0 each address has its family beside it, which hooks need not know. */
export const resultOfVersion = (result: CniResult, cniVersion: string): CniResult =>
  cniVersion.startsWith('0.') && result.ips
    ? { ...result, ips: result.ips.map((ip) => ({ version: ip.address?.includes(':') ? '6' : '4', ...ip })) }
    : result;
