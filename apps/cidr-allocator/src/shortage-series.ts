interface BySite {
  readonly site: string;
}
interface SiteCounter {
  inc(labels: BySite, value: number): void;
  remove(labels: BySite): void;
}
interface SiteGauge {
  reset(): void;
  set(labels: BySite, value: number): void;
  inc(labels: BySite, value: number): void;
}

interface Shortage extends BySite {
  /** Those that wait. */
  readonly nodes: readonly string[];
}

/**
 * Series of something of which a Site can have too little: they begin with 0 with their Site, so that the first exhaustion is an
 * increase, too, and end with it.
 * @param waiting nodes that wait now
 * @returns to be called with all Sites that there are
 */
export const shortageSeries = (exhaustion: SiteCounter, waiting: SiteGauge) => {
  let known = new Set<string>();
  return (sites: readonly string[], shortages: readonly Shortage[]): void => {
    const now = new Set(sites);
    for (const site of known.difference(now)) exhaustion.remove({ site });
    waiting.reset();
    for (const site of now) {
      exhaustion.inc({ site }, 0);
      waiting.set({ site }, 0);
    }
    for (const { site, nodes } of shortages) waiting.inc({ site }, nodes.length);
    known = now;
  };
};
