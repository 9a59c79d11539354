export { installAccessRules, kubeconfigOf } from './account.ts';
export { type ApiServer, startApiServer } from './api-server.ts';
export { type AppProcess, startApp } from './app-process.ts';
export type { FuzzTarget } from './fuzz-target.ts';
export { createNode, type NodeInit, nodeObject, poolObject, publicKeyFor, siteObject } from './objects.ts';
export { objectStore } from './object-store.ts';
export { resetCluster } from './reset-cluster.ts';
export { until } from './until.ts';
export { answerTo, ourPath, tryWrite, type Write } from './write.ts';
