import { schema } from '@unbounded/crds';

const scalars: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: Number.isInteger,
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};

const textViolations = (json: schema.JsonSchema, value: string): string[] => [
  ...(Array.from(value).length > (json.maxLength ?? Infinity) ? [`longer than ${json.maxLength}`] : []),
  ...(Array.from(value).length < (json.minLength ?? 0) ? [`shorter than ${json.minLength}`] : []),
  ...(json.pattern !== undefined && !new RegExp(json.pattern, 'u').test(value) ? [`not like ${json.pattern}`] : []),
  ...(json.enum && !json.enum.includes(value) ? [`none of ${json.enum.join()}`] : []),
];

const listViolations = (json: schema.JsonSchema, value: readonly unknown[]): string[] => {
  const texts = value.map((entry) => JSON.stringify(entry));
  const isSet = json['x-kubernetes-list-type'] === 'set';
  return [
    ...(value.length > (json.maxItems ?? Infinity) ? [`more than ${json.maxItems} items`] : []),
    ...(isSet && new Set(texts).size < texts.length ? ['an item twice'] : []),
    ...value.flatMap((entry, index) => violations(json.items ?? {}, entry).map((text) => `[${index}]: ${text}`)),
  ];
};

const objectViolations = (json: schema.JsonSchema, value: Readonly<Record<string, unknown>>): string[] => [
  ...(json.required ?? []).filter((name) => value[name] === undefined).map((name) => `${name} is missing`),
  ...Object.entries(value).flatMap(([name, field]) => {
    const known = json.properties?.[name];
    return known ? violations(known, field).map((text) => `.${name}: ${text}`) : [`${name} is no field`];
  }),
];

/** What the API server would refuse of a value, by the part of OpenAPI that our kinds' lists of nodes use. */
export const violations = (json: schema.JsonSchema, value: unknown): string[] => {
  if (json.type && !scalars[json.type]!(value)) return [`no ${json.type}`];
  if (typeof value === 'string') return textViolations(json, value);
  if (typeof value === 'number') {
    return value < (json.minimum ?? -Infinity) || value > (json.maximum ?? Infinity)
      ? [`${value} is out of range`]
      : [];
  }
  if (Array.isArray(value)) return listViolations(json, value);
  return json.type === 'object' ? objectViolations(json, value as Record<string, unknown>) : [];
};
