import type { Metrics } from '@unbounded/telemetry';

/** Which version runs, beside what it does. @param env `UNBOUNDED_VERSION`: that of the image; absent: a checkout */
export const noteBuild = (metrics: Metrics, program: string, env: NodeJS.ProcessEnv): void =>
  metrics
    .gauge({
      name: 'unbounded_build_info',
      help: 'Always 1; the labels say which program this is, and of which version.',
      labels: ['program', 'version', 'node_version'],
    })
    .set({ program, version: env['UNBOUNDED_VERSION'] ?? 'checkout', node_version: process.versions.node }, 1);
