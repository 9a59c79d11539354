import type { z } from 'zod';

/** What others sent, by a schema. */

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: string };

const LONGEST_VALUE = 60;

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
};

const valueAt = (root: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Record<PropertyKey, unknown>)[step]
        : undefined,
    root,
  );

/** @returns what the schema reads in the input, or an error of bounded length that names field, value and what is valid */
export const parse = <T>(schema: z.ZodType<T>, input: unknown): Parsed<T> => {
  const { success, data, error } = schema.safeParse(input);
  if (success) return { ok: true, value: data };
  const { path, message } = error.issues[0]!;
  const field = path.length === 0 ? 'the body' : path.map(String).join('.');
  return { ok: false, error: `${field.slice(0, 256)}: ${shown(valueAt(input, path))}: ${message}` };
};
