import { FLAG, type Message, type Request } from './message.codec.ts';
import type { NetlinkError } from './netlink-error.ts';
import { isAbsent } from './netlink-error.ts';
import type { NetlinkSocket } from './netlink-socket.ts';
import type { ApplyResult, Change, Verbs } from './route-socket.port.ts';

/** What makes a subject of rtnetlink listable and changeable. */
export interface Subject<Spec, Value, Filter> {
  readonly messages: { readonly new: number; readonly delete: number; readonly get: number };
  readonly encode: (value: Spec) => Uint8Array;
  readonly encodeDelete: (value: Spec) => Uint8Array;
  readonly encodeDump: (filter: Filter) => Uint8Array;
  /** undefined for what is of another kind. */
  readonly decode: (body: Uint8Array) => Value | undefined;
  /** What the kernel's own filter lets through. */
  readonly matches: (value: Value, filter: Filter) => boolean;
  /** For errors: `route 10.0.0.0/8`. */
  readonly name: string;
  readonly describe: (value: Spec) => string;
}

const FLAGS = { create: FLAG.create | FLAG.excl, replace: FLAG.create | FLAG.replace, delete: 0 } as const;

const outcome = (error: NetlinkError | undefined): ApplyResult => (error ? { ok: false, error } : { ok: true });

/** The verbs of one subject over a socket. */
export const verbsOf = <Spec, Value, Filter extends object>(
  socket: NetlinkSocket,
  subject: Subject<Spec, Value, Filter>,
): Verbs<Spec, Value, Filter> => {
  const request = ({ op, value }: Change<Spec>): Request => ({
    type: op === 'delete' ? subject.messages.delete : subject.messages.new,
    flags: FLAGS[op],
    body: op === 'delete' ? subject.encodeDelete(value) : subject.encode(value),
    what: () => `${op} ${subject.name} ${subject.describe(value)}`,
  });
  const one = async (change: Change<Spec>): Promise<void> => {
    await socket.request(request(change));
  };
  return {
    list: async (filter = {} as Filter) => {
      const decode = ({ body }: Message): Value | undefined => {
        const value = subject.decode(body);
        return value !== undefined && subject.matches(value, filter) ? value : undefined;
      };
      const dump = {
        type: subject.messages.get,
        flags: 0,
        body: subject.encodeDump(filter),
        what: `list ${subject.name}`,
      };
      return socket.dump(dump, decode).catch((error: unknown) => {
        // Filters by a table or link that does not exist: there is nothing to list.
        if (isAbsent(error)) return [];
        throw error;
      });
    },
    create: (value) => one({ op: 'create', value }),
    replace: (value) => one({ op: 'replace', value }),
    delete: (value) => one({ op: 'delete', value }),
    apply: async (changes) => (await socket.apply(changes.map(request))).map(outcome),
  };
};
