import { z } from 'zod';

/** What is known of the node's keys besides the keys: a file beside them, from the first exchange on. */

const known = z.object({ publicKey: z.string(), sinceMs: z.number() });
const schema = z.object({
  /** How many times the current key was exchanged. */
  generation: z.int().min(0),
  current: known,
  /** While both are in use. */
  next: known.optional(),
  /** Until when probes made with it are answered. */
  previous: z.object({ publicKey: z.string(), untilMs: z.number() }).optional(),
  /** The last text of the annotation that asks for an exchange which led to one. */
  honoured: z.string().optional(),
});
export type KeyState = z.infer<typeof schema>;

/** @throws Error naming the file that holds something else */
export const parseKeyState = (text: string, file: string): KeyState => {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    throw new Error(
      `${file} does not say which generation the WireGuard key is of: put back what stood there, or remove it; then the key is of generation 0, and links are interrupted until the other nodes have heard of that`,
      { cause: error },
    );
  }
};

/** Without a field. */
export const without = <K extends keyof KeyState>(state: KeyState, field: K): Omit<KeyState, K> => {
  const { [field]: _, ...rest } = state;
  return rest;
};
