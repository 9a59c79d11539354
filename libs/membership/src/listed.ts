const NAMED = 5;

/** The first few of a list for a message: "a, b, c, d, e and 7 more". */
export const listed = (texts: readonly string[], separator = ', '): string =>
  texts.length <= NAMED
    ? texts.join(separator)
    : `${texts.slice(0, NAMED).join(separator)} and ${texts.length - NAMED} more`;
