import { hostOf } from '../layout/addresses.ts';
import { type LabLayout, worldIps } from '../layout/layout.ts';

/** The host of the outside world, and what it may see of us. */

/** Asks the host of the outside world by which address it sees us; one URL for each family. */
export const worldUrls = (layout: LabLayout): string[] =>
  worldIps(layout).map((ip) => `http://${hostOf(ip)}:8080/client`);

/** Whether the outside world sees an address of the WAN: a node's own, or its router's. */
export const isWanAddress = (text: string): boolean =>
  /^(203\.0\.113\.|2001:db8:203:)/.test(text.trim().replace('[', ''));
