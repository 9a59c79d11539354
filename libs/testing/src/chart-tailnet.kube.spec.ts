import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { chartFolder, isKind, renderChartOnce, yamlOf } from './chart.ts';
import { podOf, workloads } from './chart-workloads.ts';

/** What the chart makes for tailnets. */

test('a tailnet is off unless it is turned on; its Secrets are read by name, and authorities are told to the program', () => {
  const named = (values: object) =>
    renderChartOnce({ values }).filter((object) => !isKind(object) && /tailnet/.test(yamlOf([object])));
  expect(named({})).toEqual([]);
  const values = {
    global: { tailnet: { caBundle: 'PEM' } },
    'tailnet-registrar': { enabled: true, secretNames: ['own'] },
  };
  const secretRules = named(values).flatMap((object) =>
    ((object as unknown as { rules?: { resources: string[] }[] }).rules ?? []).filter(({ resources }) =>
      resources.includes('secrets'),
    ),
  );
  expect(secretRules).toEqual([{ apiGroups: [''], resources: ['secrets'], verbs: ['get'], resourceNames: ['own'] }]);
  const name = named(values).find(({ kind }) => kind === 'ConfigMap')!.metadata.name;
  const { volumes, containers } = podOf('tailnet-registrar', values);
  expect(volumes).toEqual([{ name: 'ca', configMap: { name } }]);
  expect(containers[0]!.volumeMounts).toEqual([{ name: 'ca', mountPath: '/etc/unbounded/ca', readOnly: true }]);
  const env = (caBundle: string) =>
    podOf('tailnet-registrar', { ...values, global: { tailnet: { caBundle } } }).containers[0]!.env;
  expect(env('OTHER')).not.toEqual(env('PEM')); // Node reads it at its start
});

describe('devices of a tailnet', () => {
  const on = { 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } };
  const [agent, devices] = ['tailnet', 'tailnet-devices'];
  const container = (name: string, values: object = on) => podOf(name, values).containers[0]!;

  test('neither pod is root, and the agent has no capability', () => {
    const notRoot = { runAsNonRoot: true, runAsUser: 65_532, runAsGroup: 0, readOnlyRootFilesystem: true };
    expect(container(agent).securityContext).toEqual({
      ...notRoot,
      ...{ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    });
    expect(container(devices).securityContext).toEqual({
      ...notRoot,
      ...{ allowPrivilegeEscalation: true, capabilities: { drop: ['ALL'], add: ['SYS_ADMIN', 'NET_ADMIN'] } },
    });
    for (const name of [agent, devices]) {
      expect(podOf(name, on)).toMatchObject({ hostNetwork: true, priorityClassName: 'system-node-critical' });
      expect(podOf(name, on).hostPID).toBeUndefined();
    }
  });

  test('their processes have no token, and end only when somebody deletes the pod', () => {
    expect(podOf(devices, on)).toMatchObject({ automountServiceAccountToken: false, serviceAccountName: devices });
    expect(workloads(on).get(devices)!.spec.updateStrategy).toEqual({ type: 'OnDelete' });
    expect(podOf(agent, on).automountServiceAccountToken).toBeUndefined();
    expect(workloads(on).get(agent)!.spec.updateStrategy!.type).toBe('RollingUpdate');
  });

  test('processes that devices leave behind are reaped by the pod’s sandbox', () => {
    expect(podOf(devices, on).shareProcessNamespace).toBe(true);
  });

  test('pods of the two are told from each other', () => {
    const selectors = [agent, devices].map(
      (name) => (workloads(on).get(name) as unknown as { spec: { selector: object } }).spec.selector,
    );
    expect(selectors).toMatchObject(
      [agent, devices].map((name) => ({ matchLabels: { 'app.kubernetes.io/name': name } })),
    );
  });

  test('the program for pods’ namespaces sees those, and nothing there can be changed', () => {
    const netns = { mountPath: '/run/netns', mountPropagation: 'HostToContainer', readOnly: true };
    expect(container(devices).volumeMounts).toContainEqual({ name: 'netns', ...netns });
    expect(podOf(agent, on).volumes!.map(({ hostPath }) => hostPath!.path)).toEqual([
      ...['/var/lib/tailscale-cni', '/run/unbounded/tailnet', '/var/run/tailscale-cni'],
    ]);
  });

  test('authorities of a control server are told to both programs that talk to it, by one value', () => {
    const values = { ...on, global: { tailnet: { caBundle: 'PEM' } } };
    const flag = '--tailnet-ca-file=/etc/unbounded/ca/ca.pem';
    expect(container(devices, values).args).toContain(flag);
    expect(podOf(devices, values).volumes).toContainEqual({
      name: 'ca',
      configMap: { name: 'tailnet-ca', optional: true },
    });
    expect(renderChartOnce({ values }).filter(({ kind }) => kind === 'ConfigMap')).toHaveLength(1);
    expect(container(devices).args).not.toContain(flag);
  });

  test('blocks of the cluster are flags', () => {
    const values = { ...on, tailnet: { enabled: true, clusterCidrs: ['10.96.0.0/12', 'fd00::/112'] } };
    expect(container(agent, values).args).toContain('--cluster-cidrs=10.96.0.0/12,fd00::/112');
    expect(container(agent).args!.join(' ')).not.toContain('--cluster-cidrs');
  });
});

describe('what a tailnet has on hosts', () => {
  const folders = mkdtempSync(join(tmpdir(), 'unbounded-folders-'));
  afterAll(() => rmSync(folders, { recursive: true, force: true }));
  const argsOf = (name: string) =>
    podOf(name, { 'tailnet-registrar': { enabled: true }, tailnet: { enabled: true } }).initContainers![0]!.args!;
  const node = join(chartFolder, '../../tools/node');
  /** As the container does: root with CHOWN alone. */
  const prepare = (...given: string[]): string =>
    execFileSync('setpriv', ['--bounding-set=-all,+chown', node, ...argsOf('tailnet').slice(0, 2), ...given], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const look = (path: string) => {
    const { uid, gid, mode } = lstatSync(path);
    return { uid, gid, mode: mode & 0o7777 };
  };
  const given = { uid: 65_532, gid: 0, mode: 0o700 };

  test('folders are given to the user of the pods, once, and set right', () => {
    const folder = join(folders, 'one');
    mkdirSync(folder);
    for (const mode of [0o755, 0o700, 0o777]) {
      chmodSync(folder, mode);
      prepare(`${folder}=0700`);
      expect(look(folder)).toEqual(given);
    }
    const both = ['/var/lib/tailscale-cni=0700', '/run/unbounded/tailnet=0700'];
    expect(argsOf('tailnet').slice(2)).toEqual([...both, '/var/run/tailscale-cni=0750']);
    expect(argsOf('tailnet-devices').slice(2)).toEqual([...both, '/dev/net/tun=device']);
  });

  test('the device of TUNs is opened to the group where it is root’s alone, and left as udev makes it', () => {
    const device = join(folders, 'tun');
    execFileSync('mknod', [device, 'c', '10', '200']);
    for (const [before, after] of [
      [0o600, 0o660],
      [0o660, 0o660],
      [0o666, 0o666],
    ] as const) {
      chmodSync(device, before);
      prepare(`${device}=device`);
      expect(look(device)).toEqual({ uid: 0, gid: 0, mode: after });
    }
    expect(() => prepare(`${folders}=device`)).toThrow('is no device');
  });

  test('folders are not given where a link is', () => {
    const [elsewhere, link] = [join(folders, 'elsewhere'), join(folders, 'link')];
    mkdirSync(elsewhere, { mode: 0o755 });
    symlinkSync(elsewhere, link);
    const before = look(elsewhere);
    expect(() => prepare(`${link}=0700`)).toThrow('is no folder');
    expect(look(elsewhere)).toEqual(before);
  });
});
