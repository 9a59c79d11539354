/** Names and addresses of many nodes of one Site, in their order in slices. */

export const nodeName = (index: number): string => `n${String(index).padStart(4, '0')}`;
export const nodeNames = (count: number): string[] => Array.from({ length: count }, (_, index) => nodeName(index));
export const addressOf = (name: string): string => {
  const index = Number(name.slice(1));
  return `10.1.${index >> 8}.${index & 255}`;
};

const AT_ONCE = 50;
/** As many requests at once as an API server takes without making others wait. */
export const inBatches = async (all: readonly string[], work: (name: string) => Promise<unknown>): Promise<void> => {
  for (let at = 0; at < all.length; at += AT_ONCE) await Promise.all(all.slice(at, at + AT_ONCE).map(work));
};
