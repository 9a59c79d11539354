import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

/**
 * The wall clock may be set at any moment, by NTP or by hand, and differs from machine to machine. It is for what people are shown
 * and what outlives the process; everything that measures time takes performance.now() or process.hrtime.
 */
const MAY_READ_IT: Readonly<Record<string, string>> = {
  'apps/dashboard/src/app/clock.ts': 'ages of times that the view states; those of the page itself are elapsed',
  'apps/node-dataplane/src/connectivity/section.ts':
    'ages of keys outlive the process; the ring corrects a key from the future',
  'apps/node-dataplane/src/connectivity/nonce.ts':
    'nonces grow over reboots; a clock behind the last nonce does not matter',
  'apps/node-dataplane/src/connectivity/wireguard-metrics.ts': 'ages of handshakes, which WireGuard shows by it',
  'apps/node-dataplane/src/connectivity/paths/endpoints.ts':
    'WireGuard shows handshakes by it; asked only about those before our start',
  'apps/node-dataplane/src/agent/pass-metrics.ts': 'time of the last success, which a metric shows',
  'apps/node-dataplane/src/world/cluster-reporter.ts': 'times that conditions show',
  'apps/node-dataplane/src/connectivity/gateway-reporter.ts':
    'the time that a report shows; who watches takes it for a stamp only',
  'apps/status-aggregator/src/api/api.module.ts': 'the end of tokens, which a token states by that clock',
  'apps/status-aggregator/src/status-aggregator.module.ts':
    'times that the view shows, and those of certificates and tokens',
  'apps/static-egress/src/wall-time.ts': 'since when an owner is one, which a status shows',
  'apps/tailnet-registrar/src/api/requests.ts': 'dates in Retry-After, which a server states by that clock',
  'apps/tailnet-registrar/src/device-status.ts': 'times that conditions show',
  'apps/tailnet-registrar/src/registrar.module.ts':
    'the end of keys and devices, which objects and a server state by that clock',
  'libs/kube/src/apply-status.ts': 'times that conditions show',
  'libs/kube/src/event-recorder.ts': 'times that Events show',
  'libs/controller-runtime/src/leader-election.ts':
    'times that a Lease shows; its age is measured from when we saw it change',
};

const WALL_CLOCK = /\bDate\.now\b|\bnew Date\(\s*\)|(?<!new )\bDate\(\)/;
const isTest = (file: string): boolean => /\.(spec|scenario|testdata)\.ts$|\/test\//.test(file);
const reads = (file: string): boolean => WALL_CLOCK.test(readFileSync(join(root, file), 'utf8'));
const sources = files('apps/*.ts', 'libs/*.ts').filter((file) => existsSync(join(root, file)) && !isTest(file));

test('the wall clock is read only where it is shown or kept', () => {
  expect(sources.filter((file) => reads(file) && MAY_READ_IT[file] === undefined)).toEqual([]);
});

test('nothing is on that list without need', () => {
  expect(Object.keys(MAY_READ_IT).filter((file) => !sources.includes(file) || !reads(file))).toEqual([]);
});
