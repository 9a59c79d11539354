/**
 * Schemas as values. One schema gives the TypeScript type (`Infer`) and the structural OpenAPI schema that the API
 * server enforces (`json`), so the two cannot drift apart.
 */

/** A validation rule in CEL (x-kubernetes-validations). Field paths are added to the message by the API server. */
export interface CelRule {
  readonly rule: string;
  /** What would be right. Shown as it is, or when `messageExpression` cannot be evaluated. */
  readonly message: string;
  /** CEL that yields the message: names the refused value and the valid input. */
  readonly messageExpression?: string;
  /** Where in the object the error is reported, relative to the schema that holds the rule (`.ipv4`). */
  readonly fieldPath?: string;
}

/** OpenAPI v3 as the API server takes it in a CustomResourceDefinition. */
export interface JsonSchema {
  readonly type?: 'string' | 'integer' | 'boolean' | 'array' | 'object';
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}

declare const carried: unique symbol;

export interface Schema<T> {
  readonly json: JsonSchema;
  /** Exists in the type system only. */
  readonly [carried]?: T;
}

/** A field that may be absent. With a default the API server fills it in, yet a value built in code may lack it. */
export interface OptionalSchema<T> extends Schema<T> {
  readonly isOptional: true;
}

export type Infer<S> = S extends Schema<infer T> ? T : never;

type Fields = Readonly<Record<string, Schema<unknown>>>;
type Flat<T> = { [K in keyof T]: T[K] };
type InferFields<F extends Fields> = Flat<
  { readonly [K in keyof F as F[K] extends OptionalSchema<unknown> ? never : K]: Infer<F[K]> } & {
    readonly [K in keyof F as F[K] extends OptionalSchema<unknown> ? K : never]?: Infer<F[K]>;
  }
>;

interface Described {
  readonly description?: string;
  readonly rules?: readonly CelRule[];
}

const described = <T>(json: JsonSchema, { description, rules }: Described): Schema<T> => ({
  json: {
    ...(description === undefined ? {} : { description }),
    ...json,
    ...(rules === undefined || rules.length === 0 ? {} : { 'x-kubernetes-validations': rules }),
  },
});

/** `maxLength` is required: without it the API server cannot bound the cost of CEL rules. */
export const string = (
  options: Described & {
    readonly maxLength: number;
    readonly minLength?: number;
    readonly format?: string;
    readonly pattern?: string;
  },
): Schema<string> => {
  const { description, rules, ...json } = options;
  return described({ type: 'string', ...json }, { ...(description && { description }), ...(rules && { rules }) });
};

export const oneOf = <const V extends string>(values: readonly V[], options: Described = {}): Schema<V> =>
  described({ type: 'string', enum: values }, options);

export const integer = (options: Described & { readonly minimum: number; readonly maximum: number }): Schema<number> =>
  described(
    {
      type: 'integer',
      format: options.maximum > 0x7fffffff ? 'int64' : 'int32',
      minimum: options.minimum,
      maximum: options.maximum,
    },
    options,
  );

export const boolean = (options: Described = {}): Schema<boolean> => described({ type: 'boolean' }, options);

/** A number, or text (a duration, a percentage): what it may be is said by rules. */
export const integerOrString = (options: Described & { readonly maxLength: number }): Schema<number | string> =>
  described({ 'x-kubernetes-int-or-string': true, maxLength: options.maxLength }, options);

export interface ListOptions extends Described {
  readonly maxItems: number;
  readonly minItems?: number;
  /** `set`: no value twice. `map`: merged by `keys`. `atomic`: replaced as a whole. */
  readonly as: 'atomic' | 'set' | 'map';
  readonly keys?: readonly string[];
}

export const list = <T>(items: Schema<T>, options: ListOptions): Schema<readonly T[]> => {
  const { as, keys, minItems, maxItems } = options;
  return described(
    {
      type: 'array',
      items: items.json,
      ...(minItems === undefined ? {} : { minItems }),
      maxItems,
      'x-kubernetes-list-type': as,
      ...(keys === undefined ? {} : { 'x-kubernetes-list-map-keys': keys }),
    },
    options,
  );
};

export const map = <T>(
  values: Schema<T>,
  options: Described & { readonly maxProperties: number; readonly minProperties?: number },
): Schema<Readonly<Record<string, T>>> => {
  const { minProperties, maxProperties } = options;
  return described(
    {
      type: 'object',
      additionalProperties: values.json,
      ...(minProperties === undefined ? {} : { minProperties }),
      maxProperties,
    },
    options,
  );
};

export const object = <const F extends Fields>(fields: F, options: Described = {}): Schema<InferFields<F>> => {
  const required = Object.keys(fields).filter((name) => !('isOptional' in fields[name]!));
  return described(
    {
      type: 'object',
      properties: Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.json])),
      ...(required.length === 0 ? {} : { required }),
    },
    options,
  );
};

/** The field may be left out; with `defaultValue` the API server then fills it in. */
export const optional = <T>(schema: Schema<T>, defaultValue?: T): OptionalSchema<T> => ({
  json: defaultValue === undefined ? schema.json : { ...schema.json, default: defaultValue },
  isOptional: true,
});
