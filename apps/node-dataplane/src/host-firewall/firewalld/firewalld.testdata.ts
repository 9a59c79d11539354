import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@unbounded/testing';

/** The real firewalld in a network namespace, with a system bus and settings of its own. */

const BUS = (
  socket: string,
): string => `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=${socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_destination="*"/>
<allow receive_sender="*"/></policy></busconfig>`;

const DAEMON_FLAGS = ['--nofork', '--nopid', '--log-target', 'file'] as const;

export interface RealFirewalld {
  readonly socketPath: string;
  /** firewall-cmd; what it prints. @throws Error with what it says */
  cmd(...args: string[]): string;
  start(): Promise<void>;
  /** Its rules go. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  restartBus(): Promise<void>;
  close(): void;
}

const over = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });

/** @param netns its file */
export const openFirewalld = async (
  netns: string,
  { reversePath }: { readonly reversePath: 'yes' | 'no' },
): Promise<RealFirewalld> => {
  const folder = mkdtempSync(join(tmpdir(), 'firewalld-'));
  const socketPath = join(folder, 'bus');
  const config = join(folder, 'etc');
  mkdirSync(config);
  writeFileSync(join(config, 'firewalld.conf'), `IPv6_rpfilter=${reversePath}\n`);
  writeFileSync(join(folder, 'bus.conf'), BUS(socketPath));
  const env = { ...process.env, DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${socketPath}` };
  const inside = (...argv: string[]): readonly [string, string[]] => ['nsenter', [`--net=${netns}`, ...argv]];
  const begin = (...argv: string[]): ChildProcess => spawn(...inside(...argv), { env, stdio: 'ignore' });
  const cmd = (...args: string[]): string =>
    execFileSync(...inside('firewall-cmd', ...args), { env, encoding: 'utf8', stdio: 'pipe' }).trim();
  const isUp = (): boolean => {
    try {
      return cmd('--state') === 'running';
    } catch {
      return false;
    }
  };
  let [bus, daemon]: (ChildProcess | undefined)[] = [];
  const startBus = (): void => {
    bus = begin('dbus-daemon', `--config-file=${join(folder, 'bus.conf')}`, '--nofork', '--nopidfile');
  };
  const start = async (): Promise<void> => {
    daemon = begin('firewalld', ...DAEMON_FLAGS, '--system-config', config, '--log-file', join(folder, 'log'));
    await until('firewalld runs', isUp, 20_000);
  };
  const stop = async (): Promise<void> => {
    if (!daemon) return;
    daemon.kill();
    await over(daemon);
    daemon = undefined;
  };
  startBus();
  await start();
  return {
    socketPath,
    cmd,
    start,
    stop,
    async restart() {
      await stop();
      await start();
    },
    async restartBus() {
      bus!.kill();
      await over(bus!);
      await stop();
      startBus();
      await start();
    },
    close() {
      daemon?.kill('SIGKILL');
      bus?.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
