import { existsSync } from 'node:fs';
import { createConnection } from 'node:net';
import { createClient, type Message, type MessageBus } from 'dbus-native';

/** The host's D-Bus system bus, as far as it is asked about one service. */

interface Call {
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  /** D-Bus types of the body. */
  readonly signature?: string;
  readonly body?: readonly unknown[];
}

export interface SystemBus {
  /** Whether somebody has the name; never starts whom systemd would start for it. False: also without a bus. */
  isOwned(): Promise<boolean>;
  /** @throws Error with the service's own message, when it refuses, ends or does not answer in time */
  call(call: Call): Promise<unknown>;
  close(): void;
}

export interface BusOptions {
  /** Of the bus: /run/dbus/system_bus_socket. */
  readonly socketPath: string;
  /** Well-known name of the service. */
  readonly service: string;
  /** The service sent a signal, or came, or went, or the bus did. */
  readonly onSignal: () => void;
  /** Milliseconds in which the bus itself answers, and the service; a reload of many rules takes seconds. */
  readonly deadlines?: { readonly busMs: number; readonly serviceMs: number };
}

const DEADLINES = { busMs: 5000, serviceMs: 30_000 } as const;
const SIGNAL = 4;
/** Message flag: nobody is started for this call. */
const NO_AUTO_START = 2;
const DAEMON = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const;

const subscribe = async (bus: MessageBus, { service, onSignal, deadlines = DEADLINES }: BusOptions): Promise<void> => {
  const ask = (member: string, ...body: string[]): PromiseLike<unknown> =>
    bus.invoke(body.length > 0 ? { ...DAEMON, member, signature: 's', body } : { ...DAEMON, member }, {
      timeout: deadlines.busMs,
    });
  await ask('Hello');
  bus.connection.on('message', ({ type, member }: Message) => {
    if (type === SIGNAL && member !== 'NameAcquired') onSignal();
  });
  await ask('AddMatch', `type='signal',sender='${service}'`);
  await ask(
    'AddMatch',
    `type='signal',sender='${DAEMON.destination}',interface='${DAEMON.interface}',member='NameOwnerChanged',arg0='${service}'`,
  );
};

interface Connection {
  readonly ready: Promise<MessageBus>;
  end(): void;
}

const connect = (options: BusOptions, onEnd: () => void): Connection => {
  const stream = createConnection(options.socketPath);
  // Direct: a Hello of the library that is not answered ends the process.
  const bus = createClient({ stream, authMethods: ['EXTERNAL'], direct: true });
  const end = (): void => void stream.destroy();
  bus.connection.on('error', end);
  bus.connection.on('end', end);
  stream.once('close', onEnd);
  const ready = subscribe(bus, options).then(() => bus);
  ready.catch(end);
  return { ready, end };
};

/** Connects at the first question, and again when the bus was restarted. */
export const createSystemBus = (options: BusOptions): SystemBus => {
  const { socketPath, service, onSignal, deadlines = DEADLINES } = options;
  let current: Connection | undefined;

  const bus = (): Promise<MessageBus> => {
    if (current) return current.ready;
    const connection = connect(options, () => {
      if (current !== connection) return;
      current = undefined;
      onSignal();
    });
    current = connection;
    return connection.ready;
  };
  return {
    async isOwned() {
      if (!existsSync(socketPath)) return false;
      const asked = { ...DAEMON, member: 'NameHasOwner', signature: 's', body: [service] };
      return (await bus()).invoke<boolean>(asked, { timeout: deadlines.busMs });
    },
    async call({ path, interface: name, member, signature, body = [] }) {
      const message = { destination: service, path, interface: name, member, flags: NO_AUTO_START };
      const withBody = signature === undefined ? message : { ...message, signature, body: [...body] };
      return (await bus()).invoke<unknown>(withBody, { timeout: deadlines.serviceMs });
    },
    close() {
      const connection = current;
      current = undefined;
      connection?.end();
    },
  };
};
