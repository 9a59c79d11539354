import { malformed } from './refusal.ts';

const [QUOTE, BACKSLASH, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = [0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d];

/** Whether JSON nests deeper than that. Looks at brackets outside of strings: right for JSON, and harmless for what is none. */
const isDeeperThan = (json: Uint8Array, most: number): boolean => {
  let depth = 0;
  let isString = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isString) {
      if (byte === BACKSLASH) at++;
      else if (byte === QUOTE) isString = false;
    } else if (byte === QUOTE) isString = true;
    else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      if (++depth > most) return true;
    } else if (byte === CLOSE_BRACKET || byte === CLOSE_BRACE) depth--;
  }
  return false;
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

const textOf = (body: Uint8Array): string => {
  try {
    return utf8.decode(body);
  } catch {
    throw malformed('the body is not valid UTF-8');
  }
};

/** @throws Refusal that says what is wrong, and quotes nothing of the body */
export const parseJson = (body: Uint8Array, mostDepth: number): unknown => {
  const text = textOf(body);
  if (isDeeperThan(body, mostDepth)) throw malformed(`the JSON nests deeper than ${mostDepth}`);
  try {
    return JSON.parse(text);
  } catch (error) {
    const position = / position (\d+)/.exec((error as Error).message)?.[1]; // the rest quotes the text
    throw malformed(`the body is not valid JSON${position === undefined ? '' : ` at position ${position}`}`);
  }
};
