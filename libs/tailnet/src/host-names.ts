import { DIGEST_LENGTH, withDigest } from './host-name.ts';

/** Names of devices that are taken: a control server would give a second device of a name another one, which nobody foresees. */
export interface HostNames {
  /** The name, or another one in its place that nobody has. */
  take(asked: string, podKey: string): string;
}

export const createHostNames = (taken: Iterable<string>, digestOf: (text: string) => string): HostNames => {
  const names = new Set(taken);
  return {
    take(asked, podKey) {
      let name = asked;
      for (let attempt = 0; names.has(name); attempt++)
        name = withDigest(asked, digestOf(`${asked} of ${podKey} ${attempt}`).slice(0, DIGEST_LENGTH));
      names.add(name);
      return name;
    },
  };
};
