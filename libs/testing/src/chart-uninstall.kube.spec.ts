import { beforeAll, describe, expect, test } from 'vitest';

import { accessRules, type Manifest, renderChartOnce, yamlOf } from './chart.ts';

describe('what helm does before an uninstallation, where there is a registrar', () => {
  const on = (uninstall: object = {}) => ({ 'tailnet-registrar': { enabled: true, uninstall } });
  const HOOK = 'helm.sh/hook';
  type Hook = Manifest & { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } };
  const hooksOf = (values: object) =>
    (renderChartOnce({ values }) as readonly Hook[]).filter(
      ({ metadata }) => metadata.annotations?.[HOOK] !== undefined,
    );
  let hooksOn: readonly Hook[];
  beforeAll(() => void (hooksOn = hooksOf(on())));
  const jobOf = (values: object) =>
    hooksOf(values).find(({ kind }) => kind === 'Job') as Manifest & {
      readonly spec: {
        readonly activeDeadlineSeconds: number;
        readonly template: { readonly spec: Readonly<Record<'securityContext' | 'containers' | 'volumes', unknown>> };
      };
    };

  test('an account and its rights come before the Job, and all of them go when it has succeeded', () => {
    const hooks = hooksOn.toSorted((a, b) => {
      const [first, second] = [a, b].map(({ metadata }) => Number(metadata.annotations!['helm.sh/hook-weight']));
      return first! - second!;
    });
    expect(hooks.map(({ kind }) => kind)).toEqual(['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Job']);
    for (const { metadata } of hooks)
      expect(metadata.annotations).toMatchObject({
        [HOOK]: 'pre-delete',
        'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      });
    const group = 'net.unbounded-cloud.io';
    expect(hooks[1]).toMatchObject({
      rules: [
        { apiGroups: [group], resources: ['meshes'], verbs: ['list', 'patch'] },
        { apiGroups: [group], resources: ['tailnetdevices'], verbs: ['list'] },
      ],
    });
  });

  test('the Job runs the registrar’s program without any right on the host, and ends', () => {
    const image = { repository: 'r.example/own', tag: 'v2' };
    const { spec } = jobOf({ 'tailnet-registrar': { enabled: true, image, uninstall: { timeoutSeconds: 30 } } });
    const { securityContext, containers, volumes } = spec.template.spec;
    expect([spec.activeDeadlineSeconds, volumes]).toEqual([90, undefined]);
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(containers).toMatchObject([
      {
        image: 'r.example/own:v2',
        args: expect.arrayContaining(['end-tailnet', '--timeout=30s']) as string[],
        resources: { limits: { memory: '1Gi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      },
    ]);
  });

  test('there is none without a registrar, nor where it is turned off; values of before turn it on', () => {
    expect(hooksOf({})).toEqual([]);
    expect(yamlOf(renderChartOnce({ values: on({ enabled: false }) }))).not.toContain('uninstall');
    expect(hooksOf({ 'tailnet-registrar': { enabled: true, uninstall: null } })).toEqual(hooksOn);
  });

  test('it is among the objects of nobody who applies access rules alone', () => {
    expect(accessRules(on()).map(({ kind }) => kind)).not.toContain('Job');
  });
});
