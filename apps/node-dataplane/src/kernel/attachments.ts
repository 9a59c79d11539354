import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  attachProgram,
  type AttachOptions,
  type BpfLink,
  type BpfObject,
  type BpfProgram,
  type Direction,
  filterProgramId,
  openPinnedLink,
} from '@unbounded/libbpf-ts';
import { DEVICES } from '@unbounded/topology';

/**
 * Programs at devices: by tcx links, which are pinned, or on a kernel without tcx (before 6.6) by clsact filters, which need no
 * handle to live. Whether a program is there is asked of the kernel each time: anybody with the right can detach one.
 */

/** Which program stands where. */
export const PLACES: Readonly<Record<string, { readonly program: string; readonly direction: Direction }>> = {
  [DEVICES.anchor]: { program: 'unbounded_encap', direction: 'egress' },
  [DEVICES.VXLAN]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.GENEVE]: { program: 'unbounded_tunnel_ingress', direction: 'ingress' },
  [DEVICES.IPIP]: { program: 'unbounded_tunnel_ingress_l3', direction: 'ingress' },
};

export interface AttachmentOptions {
  readonly pinFolder: string;
  /** Absent: tcx where the kernel has it, else clsact. */
  readonly via?: NonNullable<AttachOptions['via']>;
}

export interface Attachments {
  /** When it returns, the device's program is attached; a device without a place has none. @throws BpfError */
  ensure(device: string, ifindex: number): void;
  /** Forgets a device that is about to go. */
  detach(device: string): void;
  /** Lets go of everything; what is pinned stays. */
  close(): void;
}

/** A device's program as the kernel was last seen to have it; without a link it is a clsact filter. */
interface Held {
  readonly ifindex: number;
  readonly link: BpfLink | undefined;
}

export const createAttachments = (object: BpfObject, { pinFolder, via }: AttachmentOptions): Attachments => {
  const programs = new Map<string, BpfProgram>();
  const programNamed = (name: string): BpfProgram =>
    programs.get(name) ?? programs.set(name, object.program(name)).get(name)!;
  const held = new Map<string, Held>();
  const pinOf = (device: string): string => join(pinFolder, 'links', device);

  /** The link that an earlier process pinned, with our program swapped in; undefined when it attaches nothing to the device. */
  const adopt = (device: string, ifindex: number, program: BpfProgram): BpfLink | undefined => {
    if (!existsSync(pinOf(device))) return undefined;
    const link = openPinnedLink(pinOf(device));
    if (link.info.ifindex === ifindex) {
      link.update(program);
      return link;
    }
    link.close();
    return undefined;
  };

  /** A link whose device is gone, or that was detached, has no ifindex any more. */
  const stands = ({ ifindex, link }: Held, direction: Direction, program: BpfProgram): boolean => {
    if (!link) return filterProgramId({ ifindex, direction }) === program.info.id;
    const { ifindex: attachedTo, programId } = link.info;
    return attachedTo === ifindex && programId === program.info.id;
  };

  const attach = (device: string, ifindex: number, program: BpfProgram): Held => {
    const adopted = adopt(device, ifindex, program);
    if (adopted) return { ifindex, link: adopted };
    const pinPath = pinOf(device);
    mkdirSync(join(pinFolder, 'links'), { recursive: true });
    rmSync(pinPath, { force: true }); // of a link that attaches nothing
    const place = { ifindex, direction: PLACES[device]!.direction, pinPath, ...(via === undefined ? {} : { via }) };
    const attachment = attachProgram(program, place);
    return { ifindex, link: attachment.via === 'tcx' ? attachment.link : undefined };
  };

  return {
    ensure(device, ifindex) {
      const place = PLACES[device];
      if (!place) return;
      const program = programNamed(place.program);
      const known = held.get(device);
      if (known?.ifindex === ifindex && stands(known, place.direction, program)) {
        if (known.link && !existsSync(pinOf(device))) known.link.pin(pinOf(device));
        return;
      }
      held.delete(device);
      known?.link?.close();
      held.set(device, attach(device, ifindex, program));
    },
    detach(device) {
      held.get(device)?.link?.close();
      held.delete(device);
      rmSync(pinOf(device), { force: true });
    },
    close() {
      for (const { link } of held.values()) link?.close();
      for (const program of programs.values()) program.close();
    },
  };
};
