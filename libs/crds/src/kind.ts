import { API_GROUP, API_VERSION, type GROUP_VERSION } from './names.ts';
import type { Infer, JsonSchema, Schema } from './schema.ts';

/** The part of metav1.ObjectMeta that our code reads or writes, as it is on the wire (times are RFC 3339 text). */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** A column of `kubectl get`. */
interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date' | 'boolean';
  /** Restricted JSON path, from the object's root. */
  readonly jsonPath: string;
  readonly description?: string;
  /** Greater than 0: shown by `-o wide` only. */
  readonly priority?: number;
}

/** A column with the status of a condition: True, False or Unknown. */
export const conditionColumn = (
  name: string,
  type: string,
  more: Pick<PrinterColumn, 'description' | 'priority'> = {},
): PrinterColumn => ({ name, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].status`, ...more });

export interface KindDefinition<K extends string = string, Body = unknown> {
  readonly kind: K;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly description: string;
  /** Absent: the objects belong to the cluster. */
  readonly scope?: 'Namespaced';
  /** Everything besides apiVersion, kind and metadata: `spec` and `status`, or root fields. */
  readonly body: Schema<Body>;
  /** `/status` is a subresource of its own, with its own permissions. */
  readonly hasStatus: boolean;
  /** JSON paths that a field selector may name (Kubernetes 1.31 and later). */
  readonly selectableFields?: readonly string[];
  readonly columns: readonly PrinterColumn[];
}

/** The object as the API server returns it. */
export type ObjectOf<D> =
  D extends KindDefinition<infer K, infer Body>
    ? { readonly apiVersion: typeof GROUP_VERSION; readonly kind: K; readonly metadata: ObjectMeta } & Body
    : never;

export const defineKind = <const K extends string, S extends Schema<unknown>>(
  definition: Omit<KindDefinition<K>, 'body'> & { readonly body: S },
): KindDefinition<K, Infer<S>> => definition as KindDefinition<K, Infer<S>>;

/** apiextensions.k8s.io/v1 CustomResourceDefinition, as far as we use it. */
export interface CustomResourceDefinition {
  readonly apiVersion: 'apiextensions.k8s.io/v1';
  readonly kind: 'CustomResourceDefinition';
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

const age: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

const rootSchema = ({ description, body }: KindDefinition): JsonSchema => ({
  ...body.json,
  description,
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    ...body.json.properties,
  },
});

/** What is applied to a cluster so that the API server knows the kind. */
export const toCustomResourceDefinition = (definition: KindDefinition): CustomResourceDefinition => {
  const { kind, plural, singular, shortNames, scope = 'Cluster', hasStatus, columns, selectableFields } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      names: { kind, listKind: `${kind}List`, plural, singular, shortNames, categories: ['unbounded'] },
      scope,
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          ...(hasStatus ? { subresources: { status: {} } } : {}),
          ...(selectableFields ? { selectableFields: selectableFields.map((jsonPath) => ({ jsonPath })) } : {}),
          additionalPrinterColumns: [...columns, age],
          schema: { openAPIV3Schema: rootSchema(definition) },
        },
      ],
    },
  };
};
