import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { afterEach, beforeEach, expect, test } from 'vitest';

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'proxy-state-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const PROGRAM = `
const { watchProxyState } = await import(${JSON.stringify(join(import.meta.dirname, 'proxy-state.ts'))});
const { relayState } = await import('@unbounded/keeper-protocol');
const file = process.argv[1] + '/keeper/relay-state.json';
const unwatched = [];
const state = watchProxyState(file, { onChange: () => undefined, onUnwatched: ({ code }) => void unwatched.push(code) });
relayState.write(file, { proxies: [], relays: [{ name: 'far', connected: true }] });
const isNew = [state.refresh(), state.refresh()];
state.close();
console.log(JSON.stringify({ unwatched, isNew, connected: state.relays.connected }));
`;

test('where programs of the node have all inotify instances, the state of the proxies is read at each pass, and the log says so once', () => {
  // The limit of a user namespace: that of the machine stays.
  const limited = 'echo 0 >/proc/sys/user/max_inotify_instances; exec "$0" "$@"';
  const program = [...agentCommand, '--input-type=module', '--eval', PROGRAM, folder];
  const argv = ['--user', '--map-root-user', 'sh', '-ec', limited, ...program];
  const printed = execFileSync('unshare', argv, { encoding: 'utf8', cwd: import.meta.dirname });
  expect(JSON.parse(printed)).toEqual({ unwatched: ['EMFILE'], isNew: [true, false], connected: ['far'] });
});
