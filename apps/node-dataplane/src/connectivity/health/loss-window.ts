/** Which of the last 32 probes were lost: a bit for each, the last one lowest. */
export interface LossWindow {
  add(isLost: boolean): void;
  /** The share that was lost: 0 to 1; undefined before the first one. */
  ratio(): number | undefined;
}

/** Bits of an operand of bitwise operators. */
const SIZE = 32;

export const createLossWindow = (): LossWindow => {
  let bits = 0;
  let count = 0;
  return {
    add(isLost) {
      bits = (bits << 1) | (isLost ? 1 : 0);
      count = Math.min(count + 1, SIZE);
    },
    ratio() {
      if (count === 0) return undefined;
      let lost = 0;
      for (let rest = bits; rest !== 0; rest &= rest - 1) lost++;
      return lost / count;
    },
  };
};
