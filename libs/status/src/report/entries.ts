import { z } from 'zod';
import { isJsonObject } from './merge-patch.ts';

/**
 * Records and lists that are read entry by entry, up to the first bad one. Those of zod look at all of them and keep every issue: a body of
 * a few hundred thousand bad entries, which is small when it is compressed, would be a million objects, of which one is told.
 */

type Context = z.RefinementCtx;

/** What the schema says of an entry that it refuses: the first issue alone. */
const refuse = (context: Context, at: PropertyKey, { error }: z.ZodSafeParseError<unknown>): undefined => {
  const { path, message } = error.issues[0]!;
  context.addIssue({ code: 'custom', path: [at, ...path], message });
};

const readRecord = <T>(
  all: object,
  context: Context,
  of: { readonly key: z.ZodType; readonly value: z.ZodType<T> },
) => {
  const read: Record<string, T> = {};
  for (const [key, value] of Object.entries(all)) {
    // As z.record does: assigned, it would be the prototype.
    if (key === '__proto__') continue;
    const ofKey = of.key.safeParse(key);
    if (!ofKey.success) return refuse(context, key, ofKey);
    const entry = of.value.safeParse(value);
    if (!entry.success) return refuse(context, key, entry);
    read[key] = entry.data;
  }
  return read;
};

const readList = <T>(all: readonly unknown[], context: Context, value: z.ZodType<T>) => {
  const read: T[] = [];
  for (const [at, one] of all.entries()) {
    const entry = value.safeParse(one);
    if (!entry.success) return refuse(context, at, entry);
    read.push(entry.data);
  }
  return read;
};

/** What such a schema is to those who read its description. */
const described = new WeakMap<object, z.ZodType>();

/** The schema of zod that takes the same values, and says so in JSON Schema. */
export const describedBy = (schema: object): z.ZodType | undefined => described.get(schema);

/** @returns what is wrong with all of them together; it is asked before any of them is looked at */
type Check<All> = (all: All) => string | undefined;

interface RecordOptions {
  readonly key?: z.ZodType<string>;
  readonly check?: Check<Readonly<Record<string, unknown>>>;
}

export const recordOf = <T extends z.ZodType>(value: T, { key = z.string(), check }: RecordOptions = {}) => {
  const schema = z.transform<unknown, Record<string, z.output<T>>>((input, context) => {
    const wrong = isJsonObject(input) ? check?.(input) : 'must be an object';
    if (wrong === undefined)
      return readRecord(input as object, context, { key, value: value as z.ZodType<z.output<T>> }) ?? z.NEVER;
    context.addIssue(wrong);
    return z.NEVER;
  });
  described.set(schema, z.record(key, value));
  return schema;
};

export const listOf = <T extends z.ZodType>(value: T, most = Infinity) => {
  const schema = z.transform<unknown, z.output<T>[]>((input, context) => {
    if (Array.isArray(input) && input.length <= most)
      return readList(input, context, value as z.ZodType<z.output<T>>) ?? z.NEVER;
    context.addIssue(`must be a list${most === Infinity ? '' : ` of at most ${most} entries`}`);
    return z.NEVER;
  });
  described.set(schema, most === Infinity ? z.array(value) : z.array(value).max(most));
  return schema;
};
