import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  attachProgram,
  type AttachOptions,
  type BpfLink,
  type BpfObject,
  type BpfProgram,
  filterProgramId,
} from '@unbounded/libbpf-ts';
import { linkPin, programIds, programPin } from './layout-folder.ts';
import { otherLayouts } from './pin-folder.ts';
import { findLink, isNeeded, linkAt } from './pinned-links.ts';
import type { Device, Place, PlaceOf } from './places.ts';

/**
 * Programs at devices: by tcx links, which are pinned, or on a kernel without tcx (before 6.6) by clsact filters, which need no
 * handle to live. Whether a program is there is asked of the kernel each time: anybody with the right can detach one.
 *
 * A program of an earlier process, or of another layout of the maps, is replaced where it stands: no packet meets two or none.
 */

export interface AttachmentOptions {
  readonly pinFolder: string;
  /** Absent: tcx where the kernel has it, else clsact. */
  readonly via?: NonNullable<AttachOptions['via']>;
  readonly placeOf: PlaceOf;
}

/** The programs, whose maps are in the pin folder of their layout. */
export interface Loaded {
  readonly object: BpfObject;
  /** The maps were there and in use, so that programs of earlier processes read them too. */
  readonly hasFormerMaps: boolean;
}

export interface Attachments {
  /**
   * Whether the device has a program of ours that reads the maps of this agent ('current'), or one that reads others: of another
   * layout, or of before the maps were made anew. @throws BpfError
   */
  standingAt(device: Device): 'current' | 'other' | undefined;
  /** When it returns, this agent's program is attached; a device without a place has none. @throws BpfError */
  ensure(device: Device): void;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /**
   * If this agent's programs stand at all devices: removes the layouts that no device needs any more, and what earlier processes left.
   * Whether they do.
   */
  removeOthers(devices: readonly Device[]): boolean;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

/** A device's program as the kernel was last seen to have it; without a link it is a clsact filter. */
interface Held {
  readonly ifindex: number;
  readonly link: BpfLink | undefined;
}

/** The programs of this agent, each known as ours by its pin before it is attached anywhere. */
const createPrograms = (object: BpfObject, pinFolder: string) => {
  const programs = new Map<string, BpfProgram>();
  return {
    named(name: string): BpfProgram {
      const known = programs.get(name);
      if (known) return known;
      const program = object.program(name);
      const pin = programPin(pinFolder, name, program.info.id);
      mkdirSync(dirname(pin), { recursive: true });
      program.pin(pin);
      programs.set(name, program);
      return program;
    },
    /** Takes the pins of those that earlier processes had attached; no device needs them any more. */
    removeOthers(): void {
      const own = new Set([...programs.values()].map((program) => program.info.id));
      for (const [id, pin] of programIds(pinFolder)) if (!own.has(id)) rmSync(pin, { recursive: true, force: true });
    },
    close(): void {
      for (const program of programs.values()) program.close();
    },
  };
};

const pinAnew = (link: BpfLink, pin: string): void => {
  mkdirSync(dirname(pin), { recursive: true });
  rmSync(pin, { force: true }); // of a link that attaches nothing
  link.pin(pin);
};

/** The link of an earlier process, or of another layout, has this program from then on. */
const adopt = (link: BpfLink, program: BpfProgram, pin: string, device: Device): void => {
  link.update(program);
  using own = linkAt(pin, device);
  if (!own) pinAnew(link, pin);
};

/** The layout whose program stands at the device, whoever attached it. @throws BpfError */
const findLayout = (pinFolder: string, device: Device, { direction }: Place): string | undefined => {
  using link = findLink(pinFolder, device);
  const id = link?.info.programId ?? filterProgramId({ ifindex: device.index, direction });
  if (id === undefined) return undefined;
  return [pinFolder, ...otherLayouts(pinFolder)].find((layout) => programIds(layout).has(id));
};

export const createAttachments = (loaded: Loaded, options: AttachmentOptions): Attachments => {
  const { pinFolder, via, placeOf: placeAt } = options;
  const placeOf = ({ name }: Device): Place => placeAt(name)!;
  const { object, hasFormerMaps } = loaded;
  const programs = createPrograms(object, pinFolder);
  const held = new Map<string, Held>();
  const pinOf = (device: string): string => linkPin(pinFolder, device);

  /** A link whose device is gone, or that was detached, has no ifindex any more. */
  const stands = (device: Device): boolean => {
    const known = held.get(device.name);
    if (known?.ifindex !== device.index) return false;
    const { program: name, direction } = placeOf(device);
    const { id } = programs.named(name).info;
    if (!known.link) return filterProgramId({ ifindex: device.index, direction }) === id;
    const { ifindex, programId } = known.link.info;
    return ifindex === device.index && programId === id;
  };

  const attach = (device: Device): Held => {
    const { program: name, direction } = placeOf(device);
    const [program, pinPath, ifindex] = [programs.named(name), pinOf(device.name), device.index];
    const link = findLink(pinFolder, device);
    if (link) {
      adopt(link, program, pinPath, device);
      return { ifindex, link };
    }
    mkdirSync(dirname(pinPath), { recursive: true });
    rmSync(pinPath, { force: true }); // of a link that attaches nothing
    const place = { ifindex, direction, pinPath, ...(via === undefined ? {} : { via }) };
    const attachment = attachProgram(program, place);
    return { ifindex, link: attachment.via === 'tcx' ? attachment.link : undefined };
  };

  return {
    standingAt(device) {
      const place = placeAt(device.name);
      if (!place) return undefined;
      if (stands(device)) return 'current';
      const layout = findLayout(pinFolder, device, place);
      if (layout === undefined) return undefined;
      return layout === pinFolder && hasFormerMaps ? 'current' : 'other';
    },
    ensure(device) {
      const { name } = device;
      if (!placeAt(name)) return;
      const known = held.get(name);
      if (stands(device)) {
        if (known?.link && !existsSync(pinOf(name))) pinAnew(known.link, pinOf(name));
        return;
      }
      held.delete(name);
      known?.link?.close();
      held.set(name, attach(device));
    },
    detach(device) {
      held.get(device)?.link?.close();
      held.delete(device);
      rmSync(pinOf(device), { force: true });
    },
    removeOthers(devices) {
      const places = devices.filter(({ name }) => placeAt(name));
      if (!places.every((device) => stands(device))) return false;
      for (const layout of otherLayouts(pinFolder))
        if (!isNeeded(layout, places)) rmSync(layout, { recursive: true, force: true });
      programs.removeOthers();
      return true;
    },
    close() {
      for (const { link } of held.values()) link?.close();
      programs.close();
    },
  };
};
