import { z } from 'zod';
import { describedBy } from './report/entries.ts';
import { forwarding } from './report/forwarding.ts';
import { nodeReport } from './report/node-report.ts';
import { push } from './report/push.ts';
import { clusterView } from './view/cluster-view.ts';

const jsonSchemaOf = (schema: z.ZodType): object => {
  const { $schema: _, ...described } = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'output',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const same = describedBy(zodSchema);
      if (same) Object.assign(jsonSchema, jsonSchemaOf(same));
    },
  });
  return described;
};

/** JSON Schemas of what goes over the wire, by the names that the description of the API has for them (OpenAPI 3.0). */
export const statusSchemas = (): Readonly<Record<string, object>> => ({
  Push: jsonSchemaOf(push),
  NodeReport: jsonSchemaOf(nodeReport),
  Forwarding: jsonSchemaOf(forwarding),
  ClusterView: jsonSchemaOf(clusterView),
});
