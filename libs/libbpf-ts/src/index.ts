export type * from './api.port.ts';
