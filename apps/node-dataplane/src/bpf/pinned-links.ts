import { existsSync } from 'node:fs';
import { type BpfLink, openPinnedLink } from '@unbounded/libbpf-ts';
import { linkNames, linkPin } from './layout-folder.ts';
import { otherLayouts } from './pin-folder.ts';
import type { Device } from './places.ts';

/** The tcx links that earlier processes pinned, in the folder of our layout or of another. */

/** The pinned link, if it attaches something to the device: one whose device is gone, or that was detached, does not. */
export const linkAt = (pin: string, { index }: Device): BpfLink | undefined => {
  if (!existsSync(pin)) return undefined;
  const link = openPinnedLink(pin);
  if (link.info.ifindex === index) return link;
  link.close();
  return undefined;
};

/** What another version pinned may be anything: undefined is no link. */
const linkOfOther = (pin: string): BpfLink | undefined => {
  try {
    return openPinnedLink(pin);
  } catch {
    return undefined;
  }
};

/** @throws BpfError, TypeError for a pin of our own layout that is no link */
export const findLink = (pinFolder: string, device: Device): BpfLink | undefined => {
  const own = linkAt(linkPin(pinFolder, device.name), device);
  if (own) return own;
  for (const layout of otherLayouts(pinFolder)) {
    const link = linkOfOther(linkPin(layout, device.name));
    if (link?.info.ifindex === device.index) return link;
    link?.close();
  }
  return undefined;
};

/** Whether by the pins of a layout a device has a program that is in none of `devices`: it may be about to go, and is up until then. */
export const isNeeded = (layout: string, devices: readonly Device[]): boolean =>
  linkNames(layout).some((name) => {
    using link = linkOfOther(linkPin(layout, name));
    const ifindex = link?.info.ifindex ?? 0;
    return ifindex !== 0 && !devices.some((device) => device.name === name && device.index === ifindex);
  });
