import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';

/** A schema of `ApiOptions.schemas`. */
export const schemaRef = (name: 'Push' | 'NodeReport' | 'Forwarding' | 'ClusterView') => ({
  $ref: `#/components/schemas/${name}`,
});

/** OpenAPI 3 of the routes; schemas are those that the program also validates by. */
export const openApiOf = (app: INestApplication, schemas: Readonly<Record<string, object>>): OpenAPIObject => {
  const config = new DocumentBuilder()
    .setTitle('unbounded status')
    .setDescription('Takes the reports of nodes, and serves the live view of the cluster.')
    .setVersion('v1alpha1')
    .addBearerAuth()
    .build();
  const document = SwaggerModule.createDocument(app, config);
  return {
    ...document,
    components: { ...document.components, schemas: { ...document.components?.schemas, ...schemas } },
  };
};
