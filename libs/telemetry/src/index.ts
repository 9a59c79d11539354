export { createLogger, LOG_LEVELS, type Logger, type LoggerOptions, type LogLevel, silentLogger } from './logger.ts';
export { createMetrics, DURATION_BUCKETS, type Metrics, type MetricsOptions } from './metrics.ts';
export { startTracing, traced, type Tracing } from './tracing.ts';
