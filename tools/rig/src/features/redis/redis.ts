import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNamespace } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { hasRedis, REDIS_PORT } from '../../apps/redis-place.ts';

/** Debian's Redis on the node of the control plane. It keeps nothing on disk: after a restart it is empty. */

const REDIS = 'redis';

export const startRedis = (layout: LabLayout): void => {
  if (!hasRedis(layout) || pidOf(REDIS) !== undefined) return;
  startDaemon(REDIS, [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    ...['redis-server', '--bind', layout.controlPlane.internalIp, '--port', String(REDIS_PORT)],
    ...['--protected-mode', 'no', '--save', '', '--appendonly', 'no'],
  ]);
};

export const redis: Feature = {
  ...NOTHING,
  start: startRedis,
  daemons: (layout) => (hasRedis(layout) ? [REDIS] : []),
};
