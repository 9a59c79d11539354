import { createMetrics } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { noteBuild } from './build-info.ts';

test.each([
  [{ UNBOUNDED_VERSION: '0.1.0' }, '0.1.0'],
  [{}, 'checkout'],
])('the metrics say which program runs, of which version and on which Node (%o)', async (env, version) => {
  const metrics = createMetrics();
  noteBuild(metrics, 'relay', env);
  const labels = `program="relay",version="${version}",node_version="${process.versions.node}"`;
  expect(await metrics.render()).toContain(`unbounded_build_info{${labels}} 1`);
});
