import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostOf } from '../../layout/addresses.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { labPki } from '../../kubernetes/control-plane.ts';
import { signCertificate } from '../../kubernetes/pki.ts';
import { inNamespace, run } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import { binary } from '../../machine/paths.ts';
import { caFile, tailnetDir } from '../../apps/tailnet-place.ts';
import { makeWanHost } from '../wan-host.ts';
import { CONTROL_PORTS, controlIps, controlUrl } from './layout.ts';

/** The control server of the lab's tailnet, with its DERP relay (tools/assets/tailnet-control): a host on the WAN. */

export const CONTROL_DAEMON = 'tailnet-control';
const HOST = 'tailnet';
const CERTIFICATE = 'tailnet-control';

/** As an administrator makes it: an OAuth client for the registrar, and a key for the laptop. */
export const OAUTH_CLIENT = { id: 'lab-client', secret: 'lab-client-secret' } as const;
const LAPTOP_KEY = 'lab-laptop-key';
const LAPTOP_TAG = 'tag:laptop';
export const laptopKeyFile = join(tailnetDir, 'laptop-key');
const secretFile = join(tailnetDir, 'client-secret');

export const startControlServer = (layout: LabLayout): void => {
  if (pidOf(CONTROL_DAEMON) !== undefined) return;
  makeWanHost(HOST, HOST, controlIps(layout));
  mkdirSync(tailnetDir, { recursive: true, mode: 0o700 });
  writeFileSync(secretFile, OAUTH_CLIENT.secret, { mode: 0o600 });
  writeFileSync(laptopKeyFile, LAPTOP_KEY, { mode: 0o600 });
  const pki = labPki();
  signCertificate(
    pki,
    CERTIFICATE,
    '/CN=tailnet',
    controlIps(layout).map((ip) => `IP:${ip}`),
  );
  const at = (port: number): string => `${hostOf(controlIps(layout)[0]!)}:${port}`;
  startDaemon(CONTROL_DAEMON, [
    ...[...inNamespace(namespaceOf(HOST)), binary('tailnet-control')],
    ...['-listen', at(CONTROL_PORTS.control), '-derp', at(CONTROL_PORTS.derp), '-stun', at(CONTROL_PORTS.stun)],
    ...['-tls-cert', pki.file(CERTIFICATE, 'crt'), '-tls-key', pki.file(CERTIFICATE, 'key')],
    ...['-client-id', OAUTH_CLIENT.id, '-client-secret-file', secretFile],
    ...['-auth-key-file', laptopKeyFile, '-auth-key-tags', LAPTOP_TAG],
  ]);
};

/** Asks the control server as whoever stands beside it. @throws CommandError */
export const askControl = (layout: LabLayout, path: string, ...curl: string[]): string =>
  run([
    ...[...inNamespace(namespaceOf(HOST)), 'curl', '-sf', '--max-time', '5', '--cacert', caFile],
    ...[...curl, `${controlUrl(layout)}${path}`],
  ]);

/** As an administrator does. @param id that the registrar has noted */
export const removeAtServer = (layout: LabLayout, id: string): void => {
  const form = `client_id=${OAUTH_CLIENT.id}&client_secret=${OAUTH_CLIENT.secret}`;
  const { access_token: token } = JSON.parse(askControl(layout, '/api/v2/oauth/token', '-d', form)) as {
    readonly access_token: string;
  };
  askControl(layout, `/api/v2/device/${id}`, '-X', 'DELETE', '-H', `authorization: Bearer ${token}`);
};

/** Nobody reaches it, its DERP relay apart, as that is another server elsewhere. */
export const cutControlServer = (isCut: boolean): void => {
  const rule = `table inet away { chain in { type filter hook input priority 0; tcp dport ${CONTROL_PORTS.control} drop; }; }`;
  const words = isCut ? [rule] : ['delete', 'table', 'inet', 'away'];
  run([...inNamespace(namespaceOf(HOST)), 'nft', ...words]);
};
