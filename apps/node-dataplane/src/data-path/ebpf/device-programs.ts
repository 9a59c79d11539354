import type { Link } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { DEVICES } from '../devices.ts';
import { type AttachmentOptions, createAttachments, type Loaded } from '../../bpf/attachments.ts';
import { PLACES } from './places.ts';
import type { Guard } from '../../connectivity/kernel/tunnel-gate.ts';

/** When a device gets this agent's program: at once where there is none of ours, else when the maps hold what it reads. */
export interface DevicePrograms {
  /** Whether any device has a program of ours, of whatever layout; one about which the kernel does not tell counts as such. */
  standAnywhere(links: ReadonlyMap<string, Link>): boolean;
  /** Sees to it that each tunnel device has a source check; which do. One of ours that is there stays until `bring`. */
  guard(links: ReadonlyMap<string, Link>): Guard;
  /** @param isWhole whether the maps hold the whole plan: a device that forwards by others goes on so until then */
  bring(links: ReadonlyMap<string, Link>, isWhole: () => boolean): Problem[];
  /** If all devices have this agent's program: removes the layouts that none uses any more. Whether they do. */
  removeOthers(links: ReadonlyMap<string, Link>): boolean;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

const notAttached = ({ name }: Link, error: unknown): Problem => {
  const remedy =
    name === DEVICES.anchor
      ? 'packets for the overlay are dropped there; the agent tries again'
      : 'the source check of its packets is missing, so the device is down; the agent tries again';
  return { reason: 'ProgramNotAttached', message: `device ${name}: ${(error as Error).message}: ${remedy}` };
};

const notReplaced = ({ name }: Link, why: string): Problem => ({
  reason: 'ProgramNotReplaced',
  message: `device ${name}: ${why}: keeping the current program; the agent retries`,
});

export const createDevicePrograms = (loaded: Loaded, places: Omit<AttachmentOptions, 'placeOf'>): DevicePrograms => {
  const { pinFolder } = places;
  const attachments = createAttachments(loaded, { ...places, placeOf: (name) => PLACES[name] });
  let guarded: ReadonlySet<string> = new Set();

  const bringOne = (device: Link, isWhole: () => boolean): Problem[] => {
    let standing: ReturnType<typeof attachments.standingAt>;
    try {
      standing = attachments.standingAt(device);
      if (standing === 'other' && !isWhole())
        return [
          notReplaced(device, `its program reads other maps, and those of ${pinFolder} do not hold the whole plan`),
        ];
      attachments.ensure(device);
      return [];
    } catch (error) {
      return [standing === undefined ? notAttached(device, error) : notReplaced(device, (error as Error).message)];
    }
  };

  return {
    standAnywhere: (links) =>
      [...links.values()].some((link) => {
        try {
          return attachments.standingAt(link) !== undefined;
        } catch {
          return true;
        }
      }),
    guard(links) {
      const [names, problems] = [new Set<string>(), new Array<Problem>()];
      for (const link of links.values()) {
        if (PLACES[link.name]?.direction !== 'ingress') continue;
        try {
          if (attachments.standingAt(link) === undefined) attachments.ensure(link);
          names.add(link.name);
        } catch (error) {
          problems.push(notAttached(link, error));
        }
      }
      guarded = names;
      return { guarded, problems };
    },
    bring(links, isWhole) {
      const devices = [...links.values()].filter(({ name }) => name === DEVICES.anchor || guarded.has(name));
      return devices.flatMap((device) => bringOne(device, isWhole));
    },
    removeOthers: (links) => attachments.removeOthers([...links.values()]),
    detach: (device) => attachments.detach(device),
    close: () => attachments.close(),
  };
};
