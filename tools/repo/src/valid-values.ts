/** What values.schema.json says of a value, in words. */

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
}
export type Root = Schema & { readonly definitions?: Readonly<Record<string, Schema>> };

const resolved = (root: Root, schema: Schema): Schema => {
  if (schema.$ref === undefined) return schema;
  const found = root.definitions?.[schema.$ref.replace('#/definitions/', '')];
  if (!found) throw new Error(`values.schema.json: $ref: ${schema.$ref}: must name a definition`);
  return { ...resolved(root, found), ...(schema.description === undefined ? {} : { description: schema.description }) };
};

const propertyOf = (root: Root, schema: Schema, key: string): Schema | undefined => {
  const found = schema.properties?.[key];
  if (found) return resolved(root, found);
  for (const part of schema.allOf ?? []) {
    const inPart = propertyOf(root, resolved(root, part), key);
    if (inPart) return inPart;
  }
  return undefined;
};

const numbers = ({ minimum, maximum }: Schema): string => {
  if (minimum === undefined) return 'a number';
  return maximum === undefined ? `${minimum} or more` : `${minimum} to ${maximum}`;
};
/** Below an object whose fields the schema leaves open. */
const OF_KUBERNETES: Schema = { description: 'as in a Pod' };
/** Of each type what is said where there is nothing more. */
const TYPES: Readonly<Record<string, string>> = {
  boolean: 'true, false',
  string: 'a text',
  object: 'an object, as in a Pod',
};

const words = (root: Root, given: Schema): string => {
  const schema = resolved(root, given);
  if (schema.enum) return schema.enum.join(', ');
  if ('const' in schema) return schema.const === '' ? 'empty' : String(schema.const);
  if (schema.description !== undefined) return schema.description.replace(/\.$/, '');
  if (schema.oneOf) return schema.oneOf.map((one) => words(root, one)).join('; or ');
  if (schema.type === 'integer') return numbers(schema);
  if (schema.type === 'array') return schema.items ? `a list: ${words(root, schema.items)}` : 'a list';
  if (schema.pattern !== undefined)
    throw new Error(`values.schema.json: pattern: ${schema.pattern}: must have a description beside it`);
  if (typeof schema.additionalProperties === 'object') return 'texts by name';
  if (schema.properties) return `an object: ${Object.keys(schema.properties).join(', ')}`;
  return TYPES[String(schema.type)] ?? '';
};

/** @throws Error when the schema does not have it: Helm would refuse it */
export const validValues = (root: Root, name: string): string => {
  const found = name.split('.').reduce<Schema | undefined>((schema, key) => {
    if (!schema || schema === OF_KUBERNETES) return schema;
    if (typeof schema.additionalProperties === 'object') return resolved(root, schema.additionalProperties);
    const isOpen = schema.type === 'object' && !schema.properties && schema.additionalProperties !== false;
    return propertyOf(root, schema, key) ?? (isOpen ? OF_KUBERNETES : undefined);
  }, root);
  if (!found) throw new Error(`values.schema.json: ${name}: must be in it, as it is in a values.yaml`);
  return words(root, found);
};
