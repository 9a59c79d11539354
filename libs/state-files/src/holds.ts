import { readFileSync } from 'node:fs';

/** Whether the file holds that and nothing else. One that is missing or cannot be read does not: it is written anew. */
export const holds = (file: string, content: string | Buffer): boolean => {
  try {
    return readFileSync(file).equals(Buffer.from(content));
  } catch {
    return false;
  }
};
