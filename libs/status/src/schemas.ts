import { z } from 'zod';
import { forwarding } from './report/forwarding.ts';
import { nodeReport } from './report/node-report.ts';
import { push } from './report/push.ts';
import { clusterView } from './view/cluster-view.ts';

/** JSON Schemas of what goes over the wire, by the names that the description of the API has for them (OpenAPI 3.0). */
export const statusSchemas = (): Readonly<Record<string, object>> =>
  Object.fromEntries(
    Object.entries({
      Push: push,
      NodeReport: nodeReport,
      Forwarding: forwarding,
      ClusterView: clusterView,
    }).map(([name, schema]) => {
      const { $schema: _, ...described } = z.toJSONSchema(schema, {
        target: 'openapi-3.0',
        io: 'output',
        unrepresentable: 'any',
      });
      return [name, described];
    }),
  );
