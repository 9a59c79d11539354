import { hostOf } from '../layout/addresses.ts';
import type { LabLayout } from '../layout/layout.ts';

/** The Redis by which replicas of the status aggregator share what they hold. */

/** TCP, on the node of the control plane. */
export const REDIS_PORT = 6379;
export const hasRedis = ({ options }: LabLayout): boolean => options.redis;
export const redisUrl = ({ controlPlane }: LabLayout): string =>
  `redis://${hostOf(controlPlane.internalIp)}:${REDIS_PORT}`;
