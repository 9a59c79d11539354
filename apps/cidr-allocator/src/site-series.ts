interface SiteCounter {
  inc(labels: { readonly site: string }, value: number): void;
  remove(labels: { readonly site: string }): void;
}

/**
 * Series of a counter that begin with 0 with their Site, so that the first time is an increase, too, and end with it.
 * @returns to be told of all Sites that there are
 */
export const keptBySite = (counter: SiteCounter): ((sites: readonly string[]) => void) => {
  let known = new Set<string>();
  return (sites) => {
    const now = new Set(sites);
    for (const site of known.difference(now)) counter.remove({ site });
    for (const site of now) counter.inc({ site }, 0);
    known = now;
  };
};
