/** What the control server has confirmed as gone, by the uid of its record: as long as the record itself cannot be ended, too. */
export interface ConfirmedRemovals {
  of(uid: string): ReadonlySet<string>;
  add(uid: string, what: readonly string[]): void;
  forget(uid: string): void;
}

export const createConfirmedRemovals = (): ConfirmedRemovals => {
  const confirmed = new Map<string, ReadonlySet<string>>();
  const of = (uid: string) => confirmed.get(uid) ?? new Set<string>();
  return {
    of,
    add: (uid, what) => void confirmed.set(uid, new Set([...of(uid), ...what])),
    forget: (uid) => void confirmed.delete(uid),
  };
};
