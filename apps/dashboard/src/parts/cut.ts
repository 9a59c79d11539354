import { useState } from 'react';

/** A list of which the first ones are shown, until somebody asks for all. */
export const useCut = <T>(all: readonly T[], most: number) => {
  const [isWhole, setIsWhole] = useState(false);
  const shown = isWhole ? all : all.slice(0, most);
  return { shown, isCut: shown.length < all.length, showAll: () => setIsWhole(true) };
};
