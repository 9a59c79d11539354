import { KEY_BYTES } from '@unbounded/relay-protocol';

/** A list of that many bytes has some 90,000 keys. */
export const LARGEST_LIST_BYTES = 4 * 1024 * 1024;

const KEY = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;

/**
 * The list of keys that may be registered: WireGuard public keys in base64, one a line; blank lines, and what follows a "#", count
 * for nothing. @throws Error that names the line
 */
export const parseAllowedKeys = (text: string): ReadonlySet<string> => {
  const keys = new Set<string>();
  for (const [index, line] of text.split('\n').entries()) {
    const key = line.split('#', 1)[0]!.trim();
    if (key === '') continue;
    if (!KEY.test(key))
      throw new Error(`line ${index + 1}: "${key.slice(0, 60)}" must be a key of ${KEY_BYTES} bytes in base64`);
    keys.add(key);
  }
  return keys;
};
