import { setTimeout as delay } from 'node:timers/promises';
import type { NodeEvent, SectionContext } from '../../section.port.ts';
import type { HostFirewall, HostFirewallMode } from '../host-firewall.port.ts';
import { collected, createSchedule, EVERY_MS } from '../schedule.ts';
import { createFirewalld, FIREWALLD_NAME, type Firewalld } from './firewalld.ts';
import { createFirewalldOpenings, type FirewalldLook } from './openings.ts';
import { createSystemBus, type SystemBus } from './system-bus.ts';

/** firewalld, of which every change is heard by its signals. */

const HEARD_MS = 60_000;
/** So long a pass waits for firewalld; what it answers later is for the next one. */
const WAIT_MS = 5000;
/** FORWARD and INPUT. */
const CHAINS = 2;

export type FirewalldContext = Pick<SectionContext, 'traffic' | 'trigger'>;

const NOTHING: FirewalldLook = { isRunning: false, isOpen: undefined, problems: [], events: [] };

export const openFirewalldFirewall = (
  { traffic, trigger }: FirewalldContext,
  socketPath: string,
  { mode, elapsed }: { readonly mode: HostFirewallMode; readonly elapsed: () => number },
): HostFirewall => {
  const schedule = createSchedule(elapsed);
  const onChange = (): void => {
    schedule.ask();
    trigger();
  };
  const changes = collected(onChange);
  const bus: SystemBus = createSystemBus({ socketPath, service: FIREWALLD_NAME, onSignal: changes.hear });
  const firewalld: Firewalld = createFirewalld(bus);
  const openings = createFirewalldOpenings(firewalld, elapsed);
  traffic.onChange(onChange);
  let last = NOTHING;
  let events: NodeEvent[] = [];
  let looking: Promise<void> | undefined;

  const look = async (): Promise<void> => {
    const before = schedule.asked();
    last = await openings.ensure(mode, traffic.current());
    events.push(...last.events);
    const failed = last.problems.some(({ reason }) => reason === 'HostFirewallNotManaged');
    schedule.looked({ what: FIREWALLD_NAME, failed, nextMs: last.isRunning ? HEARD_MS : EVERY_MS }, before);
    looking = undefined;
  };
  const begin = (): Promise<void> => {
    looking = look();
    return looking;
  };
  /** One look at a time, and none that hangs holds up other firewalls. */
  const lookForAWhile = async (): Promise<void> => {
    const isDone = await Promise.race([begin().then(() => true), delay(WAIT_MS, false, { ref: false })]);
    if (!isDone) void looking?.then(trigger);
  };
  return {
    async pass() {
      if (!looking && schedule.isDue(FIREWALLD_NAME)) await lookForAWhile();
      const refusing = last.isRunning ? CHAINS : 0;
      const blocking = last.isOpen ? 0 : refusing;
      const told = events;
      events = [];
      const nextPassMs = looking ? EVERY_MS : schedule.nextMs();
      return { nextPassMs, problems: last.problems, events: told, refusing, blocking };
    },
    stop() {
      changes.stop();
      bus.close();
    },
  };
};

/** Uninstall. @throws Error when our objects cannot be taken away */
export const closeFirewalld = async (socketPath: string): Promise<void> => {
  const bus = createSystemBus({ socketPath, service: FIREWALLD_NAME, onSignal: () => undefined });
  try {
    const { problems } = await createFirewalldOpenings(createFirewalld(bus)).ensure('Report', undefined);
    const failures = problems.filter(({ reason }) => reason === 'HostFirewallNotManaged');
    if (failures.length > 0) throw new Error(failures.map(({ message }) => message).join('; '));
  } finally {
    bus.close();
  }
};
