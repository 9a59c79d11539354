export { type ApiServer, startApiServer } from './api-server.ts';
export { until } from './until.ts';
