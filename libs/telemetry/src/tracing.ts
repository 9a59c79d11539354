import type { Attributes, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';

/** Set while tracing runs; without it `traced` only calls the function. */
let active: { readonly tracer: Tracer; readonly errorCode: SpanStatusCode } | undefined;

export interface Tracing {
  /** Sends what has not been sent, within the exporter's time limit. */
  stop(): Promise<void>;
}

/**
 * Starts sending spans when OTEL_EXPORTER_OTLP_ENDPOINT (or …_TRACES_ENDPOINT) is set. The libraries are loaded only
 * then: a process without tracing pays neither start-up time nor memory for it.
 */
export const startTracing = async (
  service: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Tracing> => {
  if (!env['OTEL_EXPORTER_OTLP_ENDPOINT'] && !env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT']) {
    return { stop: () => Promise.resolve() };
  }
  const [{ BatchSpanProcessor, TracerProvider }, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ]);
  const { defaultResource, resourceFromAttributes } = await import('@opentelemetry/resources');
  const resource = defaultResource().merge(
    resourceFromAttributes({ 'service.name': env['OTEL_SERVICE_NAME'] ?? service }),
  );
  const provider = new TracerProvider({
    resource,
    spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter() })],
  });
  const { SpanStatusCode: codes } = await import('@opentelemetry/api');
  active = { tracer: provider.getTracer(service), errorCode: codes.ERROR };
  return {
    stop: async () => {
      active = undefined;
      await provider.shutdown();
    },
  };
};

/** Runs `work` in a span; an error marks the span and is thrown on. */
export const traced = async <T>(
  name: string,
  attributes: Attributes,
  work: (span?: Span) => Promise<T>,
): Promise<T> => {
  if (!active) return work();
  const { tracer, errorCode } = active;
  const span = tracer.startSpan(name, { attributes });
  try {
    return await work(span);
  } catch (error) {
    span.recordException(error instanceof Error ? error : String(error));
    span.setStatus({ code: errorCode, message: error instanceof Error ? error.message : String(error) });
    throw error;
  } finally {
    span.end();
  }
};
