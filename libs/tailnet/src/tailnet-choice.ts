import type { TailnetSettings } from '@unbounded/crds';

/** Which tailnet the registrar works on: devices of one that is given up are removed there, and by its credentials. */

/** Where a tailnet is, and by what devices are made and removed there. */
export interface TailnetServer {
  readonly controlURL: string;
  readonly apiURL: string;
  readonly credentials: TailnetSettings['credentials'];
}

/** As the schema fills in what is left out. */
export const CONTROL_URL_DEFAULT = 'https://controlplane.tailscale.com';
const API_URL_DEFAULT = 'https://api.tailscale.com';

export interface TailnetChoice {
  /** That of all records; kept in the status of the Mesh, so that it outlives its settings. Undefined: none. */
  readonly server: TailnetServer | undefined;
  /** By which new records are made. Undefined: there are none, and those that there are go. */
  readonly settings: TailnetSettings | undefined;
}

const serverOf = ({ controlURL, apiURL, credentials }: TailnetSettings): TailnetServer => ({
  controlURL: controlURL ?? CONTROL_URL_DEFAULT,
  apiURL: apiURL ?? API_URL_DEFAULT,
  credentials,
});

/**
 * @param kept what the status of the Mesh has
 * @param hasRecords there are records, which are of that tailnet
 */
export const chooseTailnet = (
  settings: TailnetSettings | undefined,
  kept: TailnetServer | undefined,
  hasRecords: boolean,
): TailnetChoice => {
  const wanted = settings && serverOf(settings);
  const isSame = wanted?.controlURL === kept?.controlURL && wanted?.apiURL === kept?.apiURL;
  if (!kept || isSame || !hasRecords) return { server: wanted, settings };
  return { server: kept, settings: undefined };
};
