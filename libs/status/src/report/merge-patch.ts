/**
 * JSON Merge Patch (RFC 7396): a delta has the members of an object that changed, null for those that went. An array is replaced
 * whole, so what changes one by one is an object by name. A null inside of a document cannot be expressed: reports and views have none.
 */

export type Json = string | number | boolean | null | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const membersOf = (value: unknown): Map<string, Json> => new Map(isJsonObject(value) ? Object.entries(value) : []);

/** @returns a new document; what the patch leaves as it is is shared with the target */
export const applyMergePatch = (target: Json | undefined, patch: Json): Json => {
  if (!isJsonObject(patch)) return patch;
  const members = membersOf(target);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) members.delete(name);
    else members.set(name, applyMergePatch(members.get(name), value));
  }
  // Own members, whatever their name: `__proto__` is a name like any other.
  return Object.fromEntries(members);
};

const areSameTexts = (before: Json, after: Json): boolean =>
  before === after || (typeof before === 'object' && JSON.stringify(before) === JSON.stringify(after));

/** @returns undefined where the documents are the same */
export const createMergePatch = (before: JsonObject, after: JsonObject): JsonObject | undefined => {
  if (before === after) return undefined;
  const changed: [string, Json][] = [];
  for (const name of Object.keys(before)) if (!Object.hasOwn(after, name)) changed.push([name, null]);
  for (const [name, value] of Object.entries(after)) {
    const known = Object.hasOwn(before, name) ? before[name]! : undefined;
    if (isJsonObject(known) && isJsonObject(value)) {
      const inner = createMergePatch(known, value);
      if (inner) changed.push([name, inner]);
    } else if (known === undefined || !areSameTexts(known, value)) changed.push([name, value]);
  }
  return changed.length === 0 ? undefined : Object.fromEntries(changed);
};
