import type { Problem } from '@unbounded/topology';
import { createMeasuring } from '../health/measuring.ts';
import { takeNonce } from '../nonce.ts';
import { createDevicePaths, type DevicePaths } from './device-paths.ts';
import { createExchange } from './exchange.ts';
import {
  type PathCounts,
  type PathDevice,
  pathId,
  type PathReport,
  type PathsPlan,
  type PathWorkerSettings,
} from './messages.ts';

/** Watches every path of a plan, and gives WireGuard the endpoints that are chosen. */
export interface Watcher {
  apply(plan: PathsPlan): Promise<readonly Problem[]>;
  /** What there was since the last call; undefined: nothing. */
  measured(): PathCounts | undefined;
  stop(): Promise<void>;
}

export interface WatcherOptions extends PathWorkerSettings {
  readonly onMoved: (report: PathReport) => void;
  /** A path ({@link pathId}) that is watched no more. */
  readonly onGone: (id: string) => void;
}

/** Whether it is another interface by the same name: everything is to be begun anew. */
const isOther = (a: PathDevice, b: PathDevice): boolean =>
  a.privateKey !== b.privateKey || a.listenPort !== b.listenPort || a.isUserspace !== b.isUserspace;

export const createWatcher = ({ netnsFd, nonceFile, onMoved, onGone }: WatcherOptions): Watcher => {
  const measuring = createMeasuring();
  const exchange = createExchange(measuring, netnsFd);
  const nonce = takeNonce(nonceFile);
  const devices = new Map<string, DevicePaths>();
  let isFirstPlan = true;

  const add = (plan: PathDevice): DevicePaths => {
    const { name } = plan;
    const device = createDevicePaths({
      plan,
      ...(netnsFd === undefined ? {} : { netnsFd }),
      nonce,
      send: (lane, probe, to) => exchange.send(lane, probe, to),
      onMoved,
      onGone: (publicKey) => onGone(pathId({ device: name, publicKey })),
    });
    devices.set(name, device);
    return device;
  };
  const correspond = (): void => exchange.setCorrespondents([...devices.values()].flatMap((device) => device.lanes()));
  const drop = async (name: string, device: DevicePaths): Promise<void> => {
    devices.delete(name);
    await device.stop();
    for (const publicKey of device.peers()) onGone(pathId({ device: name, publicKey }));
  };

  return {
    async apply({ devices: planned, isRelayUp }) {
      const byName = new Map(planned.map((plan) => [plan.name, plan]));
      for (const [name, device] of devices) {
        const plan = byName.get(name);
        if (!plan || isOther(plan, device.plan)) await drop(name, device);
      }
      correspond();
      const problems: Problem[] = [];
      for (const plan of planned) {
        const device = devices.get(plan.name) ?? add(plan);
        const known = new Set(device.lanes());
        problems.push(...(await device.apply(plan, { isRelayUp, isAdopted: isFirstPlan })));
        // New lanes ask from now on: an interface that does not answer must not keep those of others from hearing the replies.
        if (device.lanes().some((lane) => !known.has(lane))) correspond();
      }
      isFirstPlan = false;
      correspond();
      return problems;
    },
    measured: () => measuring.take(),
    async stop() {
      exchange.close();
      for (const device of devices.values()) await device.stop();
    },
  };
};
