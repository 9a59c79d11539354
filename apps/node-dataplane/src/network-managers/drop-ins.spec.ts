import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { MANAGER_DROP_INS } from '@unbounded/config/manager-drop-ins';
import { silentLogger as logger } from '@unbounded/telemetry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SectionContext } from '../section.port.ts';
import { ensureDropIns, removeDropIns } from './drop-ins.ts';
import { networkManagers } from './section.ts';

const NETWORKD = 'systemd/networkd.conf.d/90-unbounded.conf';
const NETWORK_MANAGER = 'NetworkManager/conf.d/90-unbounded.conf';
const [networkd, networkManager] = MANAGER_DROP_INS;

let top: string;
let etc: string;
const at = (name: string): string => join(etc, name);
const read = (name: string): string => readFileSync(at(name), 'utf8');
const write = (name: string, content: string): void => {
  mkdirSync(dirname(at(name)), { recursive: true });
  writeFileSync(at(name), content);
};
const removed = (): string[] => {
  const said: string[] = [];
  removeDropIns(etc, (line) => void said.push(line));
  return said;
};

beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), 'drop-ins-'));
  etc = join(top, 'etc');
  for (const home of ['systemd', 'NetworkManager']) mkdirSync(at(home), { recursive: true });
});
afterEach(() => rmSync(top, { recursive: true }));

test('both managers get their file, which everybody can read, and hear how it comes to count', () => {
  const { problems, events } = ensureDropIns(etc);
  expect(problems).toEqual([]);
  expect(events.map(({ note }) => note)).toEqual([
    '/etc/systemd/networkd.conf.d/90-unbounded.conf is written; systemd-networkd goes by it after a restart of the host, or: systemctl restart systemd-networkd',
    '/etc/NetworkManager/conf.d/90-unbounded.conf is written; NetworkManager goes by it after a restart of the host, or: systemctl reload NetworkManager',
  ]);
  expect(read(NETWORKD)).toBe(networkd!.content);
  expect(read(NETWORK_MANAGER)).toBe(networkManager!.content);
  expect(statSync(at(NETWORKD)).mode & 0o777).toBe(0o644);
  expect(statSync(dirname(at(NETWORKD))).mode & 0o777).toBe(0o755);
});

test('a manager that is not installed gets no folder', () => {
  rmSync(at('NetworkManager'), { recursive: true });
  expect(ensureDropIns(etc).events).toHaveLength(1);
  expect(existsSync(at('NetworkManager'))).toBe(false);
  expect(removed()).toHaveLength(1);
});

test('a file that is as it should be is not touched, one of ours that was changed is written anew', () => {
  ensureDropIns(etc);
  const before = statSync(at(NETWORKD)).ino;
  expect(ensureDropIns(etc).events).toEqual([]);
  expect(statSync(at(NETWORKD)).ino).toBe(before);
  appendFileSync(at(NETWORKD), 'ManageForeignRoutes=yes\n');
  expect(ensureDropIns(etc).events).toHaveLength(1);
  expect(read(NETWORKD)).toBe(networkd!.content);
});

describe('what is not ours stays as it is, is reported with a remedy, and keeps the other manager from nothing', () => {
  const other = '[Network]\nSpeedMeter=yes\n';
  test.each<[string, () => void, string]>([
    [
      'a file of the user under our name',
      () => write(NETWORKD, other),
      '/etc/systemd/networkd.conf.d/90-unbounded.conf is not of Unbounded (its first line is another): rename or remove it',
    ],
    [
      'an empty file, which masks one of the same name elsewhere',
      () => write(NETWORKD, ''),
      '/etc/systemd/networkd.conf.d/90-unbounded.conf is not of Unbounded (its first line is another): rename or remove it',
    ],
    [
      'a link in its place',
      () => {
        mkdirSync(dirname(at(NETWORKD)));
        symlinkSync('/dev/null', at(NETWORKD));
      },
      '/etc/systemd/networkd.conf.d/90-unbounded.conf is a symbolic link, which is not followed',
    ],
    [
      'a link in place of the folder',
      () => {
        mkdirSync(join(top, 'elsewhere'));
        symlinkSync(join(top, 'elsewhere'), dirname(at(NETWORKD)));
      },
      '/etc/systemd/networkd.conf.d is a symbolic link, which is not followed',
    ],
    [
      'a link in place of the manager’s folder',
      () => {
        rmSync(at('systemd'), { recursive: true });
        mkdirSync(join(top, 'elsewhere'));
        symlinkSync(join(top, 'elsewhere'), at('systemd'));
      },
      '/etc/systemd is a symbolic link, which is not followed',
    ],
    [
      'a file in place of the folder',
      () => writeFileSync(dirname(at(NETWORKD)), ''),
      'networkd.conf.d is not a directory',
    ],
    ['a folder in its place', () => mkdirSync(at(NETWORKD), { recursive: true }), '90-unbounded.conf is not a file'],
  ])('%s', (_, make, why) => {
    make();
    const { problems, events } = ensureDropIns(etc);
    expect(problems).toEqual([{ reason: 'NetworkManagerDropInRefused', message: expect.stringContaining(why) }]);
    expect(problems[0]!.message).toMatch(
      /^\/etc\/systemd\/networkd\.conf\.d\/90-unbounded\.conf for systemd-networkd is not written: .*; write it by hand, or set node-dataplane\.networkManagerDropIns to false$/,
    );
    expect(events).toHaveLength(1);
    expect(read(NETWORK_MANAGER)).toBe(networkManager!.content);
    expect(removed()).toEqual([
      expect.stringContaining('leaving /etc/systemd/networkd.conf.d/90-unbounded.conf: '),
      expect.stringContaining('removing /etc/NetworkManager/conf.d/90-unbounded.conf; '),
    ]);
  });

  test('a foreign file keeps its content', () => {
    write(NETWORKD, other);
    ensureDropIns(etc);
    expect(read(NETWORKD)).toBe(other);
    removed();
    expect(existsSync(at(NETWORKD))).toBe(true);
  });

  test('a link elsewhere leads to no file of ours', () => {
    mkdirSync(join(top, 'elsewhere'));
    symlinkSync(join(top, 'elsewhere'), dirname(at(NETWORKD)));
    ensureDropIns(etc);
    expect(existsSync(join(top, 'elsewhere/90-unbounded.conf'))).toBe(false);
  });
});

test('uninstall takes away our files, and says what makes the managers go without them', () => {
  ensureDropIns(etc);
  expect(removed()).toEqual([
    'removing /etc/systemd/networkd.conf.d/90-unbounded.conf; systemd-networkd goes without it after: systemctl restart systemd-networkd',
    'removing /etc/NetworkManager/conf.d/90-unbounded.conf; NetworkManager goes without it after: systemctl reload NetworkManager',
  ]);
  expect([existsSync(at(NETWORKD)), existsSync(at(NETWORK_MANAGER))]).toEqual([false, false]);
  expect(removed()).toEqual([]);
});

test('the section reports at each pass what stands in the way, and an event only when it wrote', async () => {
  write(NETWORKD, 'mine');
  const section = await networkManagers(etc).open({ logger } as unknown as SectionContext);
  const reports = [(await section.pass()).report, (await section.pass()).report];
  expect(reports.map(({ problems, events }) => [problems.length, events?.length])).toEqual([
    [1, 1],
    [1, 0],
  ]);
});
