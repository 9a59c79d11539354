import { DEVICES } from '@unbounded/config/ownership';
import { l2LayoutFingerprint } from '@unbounded/bpf-maps/l2';
import type { Problem } from '@unbounded/topology';
import { type Attachments, createAttachments } from '../bpf/attachments.ts';
import { markLayout } from '../bpf/layout-folder.ts';
import type { Device, Place } from '../bpf/places.ts';
import type { LoadedL2 } from './maps.ts';
import { isPortName } from './names.ts';

/** Which program of stretched L2 stands where. */

const AT_EXIT: Place = { program: 'unbounded_l2_receive', direction: 'egress' };
const AT_PORT: Place = { program: 'unbounded_l2_port', direction: 'ingress' };

const placeOf = (device: string): Place | undefined =>
  device === DEVICES.l2Exit ? AT_EXIT : isPortName(device) ? AT_PORT : undefined;

const notAttached = (device: string, error: unknown): Problem => ({
  reason: 'L2ProgramNotAttached',
  message: `device ${device}: ${(error as Error).message}: frames do not pass it; the agent tries again`,
});

export interface L2Programs {
  /** Each device has this agent's program when no problem names it; programs and layouts that no device needs any more are gone. */
  ensure(devices: readonly Device[]): readonly Problem[];
  close(): void;
}

export const createL2Programs = (loaded: LoadedL2, pinFolder: string): L2Programs => {
  const attachments: Attachments = createAttachments(loaded, { pinFolder, placeOf });
  let known: readonly string[] = [];
  return {
    ensure(devices) {
      const names = new Set(devices.map(({ name }) => name));
      for (const name of known) if (!names.has(name)) attachments.detach(name);
      known = [...names];
      const problems = devices.flatMap((device): Problem[] => {
        try {
          attachments.ensure(device);
          return [];
        } catch (error) {
          return [notAttached(device.name, error)];
        }
      });
      if (problems.length === 0 && attachments.removeOthers(devices)) markLayout(pinFolder, l2LayoutFingerprint());
      return problems;
    },
    close: () => attachments.close(),
  };
};
