/** What sections add to the boundary of the overlay at this node, which is in connectivity's table. */

/** Prefixes of either family. */
export interface BoundaryAdditions {
  /** Destinations outside of the overlay for which packets may come out of it here. */
  readonly exits?: readonly string[];
  /** Pods of other nodes whose packets may come out of it here, wherever they go. */
  readonly exitSources?: readonly string[];
  /** Sources outside of the overlay whose packets may go into it here, if they come by the device that leads back to them. */
  readonly entries?: readonly string[];
  /**
   * Devices of the section's own that carry packets of pods between nodes. What comes in by them and leaves by them is the section's to
   * check: here they count as the overlay's, beside its tunnels.
   */
  readonly devices?: readonly string[];
  /** What belongs to the overlay has PASSING_MARK where firewalls of the host see it. */
  readonly marksPassing?: boolean;
}

/** As a section sees it. */
export interface SectionBoundary {
  /** In place of what the section added before; in force with the next pass of connectivity, which is soon. */
  set(additions: BoundaryAdditions): void;
  /** Of all sections. */
  all(): readonly BoundaryAdditions[];
  onChange(listener: () => void): void;
}

export interface Boundary {
  of(section: string): SectionBoundary;
}

export const createBoundary = (): Boundary => {
  const additions = new Map<string, BoundaryAdditions>();
  const listeners: (() => void)[] = [];
  return {
    of: (section) => ({
      set(added) {
        if (JSON.stringify(additions.get(section)) === JSON.stringify(added)) return;
        additions.set(section, added);
        for (const listener of listeners) listener();
      },
      all: () => [...additions].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one),
      onChange: (listener) => void listeners.push(listener),
    }),
  };
};
