export { createLogger, type Logger, type LogLevel, silentLogger } from './logger.ts';
export { createMetrics, type Metrics } from './metrics.ts';
export { createStateMetrics } from './state-metrics.ts';
export { startTracing, traced } from './tracing.ts';
