import { join } from 'node:path';
import { PIN_FOLDER, PORTS, STATE_FOLDER } from '@unbounded/config/ownership';
import { createRouteSocket } from '@unbounded/netlink';
import { createMetrics, type Metrics, silentLogger } from '@unbounded/telemetry';
import { generatePrivateKey } from '@unbounded/wireguard';
import { openEbpfPath } from '../data-path/ebpf/ebpf-path.ts';
import { groupMapPin } from '../data-path/ebpf/forwarding-maps.ts';
import type { DataPathKind } from '../data-path/kernel-plan.ts';
import { openNetlinkPath } from '../data-path/netlink/netlink-path.ts';
import { createSysctls } from '../kernel/sysctls.ts';
import { VIA } from './attached-programs.testdata.ts';
import type { Dataplane } from './dataplane.ts';
import { startHealth } from './health/health.ts';
import { openFirewall } from './kernel/firewall.testdata.ts';
import { noPaths } from './paths/paths.testdata.ts';

/** A node without relay and pods, in the namespaces of the process. */
export const openTestDataplane = (kind: DataPathKind, metrics: Metrics = createMetrics()): Dataplane => {
  const net = createRouteSocket();
  const privateKey = generatePrivateKey();
  const objectPath = join(import.meta.dirname, '../../../../bpf/build/unbounded_encap.bpf.o');
  const files = { pinFolder: PIN_FOLDER, indexFile: join(STATE_FOLDER, 'groups.json') };
  return {
    net,
    ...openFirewall(silentLogger),
    path:
      kind === 'ebpf'
        ? openEbpfPath(net, { objectPath, ...files, metrics, ...(VIA === undefined ? {} : { via: VIA }) })
        : openNetlinkPath(net, files),
    health: startHealth({
      keys: { current: privateKey },
      port: PORTS.health,
      groups: kind === 'ebpf' ? { mapPin: groupMapPin(PIN_FOLDER) } : 'routes',
      stateFile: join(STATE_FOLDER, 'health.json'),
      logger: silentLogger,
      metrics,
      onChange: () => undefined,
    }),
    paths: noPaths(),
    sysctls: createSysctls(join(STATE_FOLDER, 'sysctls.json')),
    wireGuard: {
      keyOf: () => ({ privateKey, file: '/etc/wireguard/server.priv' }),
      unitsDir: '/run/unbounded/keeper/units',
    },
    relayWays: () => [],
    pods: () => [],
    logger: silentLogger,
  };
};
