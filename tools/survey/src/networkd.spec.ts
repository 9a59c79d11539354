import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANAGER_DROP_INS } from '@unbounded/config/manager-drop-ins';
import { expect, test } from 'vitest';
import { networkdRow } from './networkd.ts';
import { rootWith } from './settings.testdata.ts';

const ours = MANAGER_DROP_INS.find(({ manager }) => manager === 'systemd-networkd')!;
const OURS = 'etc/systemd/networkd.conf.d/90-unbounded.conf';
const ALL_NO = '[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=false\nManageForeignNextHops=0\n';
const ALL_YES = ALL_NO.replaceAll(/=.*/g, '=yes');

const rowFor = (files: Record<string, string>) => {
  using folder = rootWith({ 'etc/hostname': 'w1', ...files });
  return networkdRow(folder.root, true);
};
const stateFor = (files: Record<string, string>): string => rowFor(files).state;

test('one that does not run disturbs nothing', () => {
  expect(networkdRow('/nowhere', false).state).toBe('off');
});

test('without settings the file is printed that changes them, and the command', () => {
  const { state, advice, file } = rowFor({});
  expect(state).toBe('disturbs');
  expect(advice).toBe(
    'ManageForeignRoutes=yes (default), ManageForeignRoutingPolicyRules=yes (default), ManageForeignNextHops=yes (default): it removes routes and rules of ours when it starts; add this file, then: systemctl restart systemd-networkd',
  );
  expect(file).toEqual({ path: `/${OURS}`, content: ours.content });
});

test.each(MANAGER_DROP_INS)('docs/requirements.md shows the file for $manager', ({ content, home, folder }) => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/requirements.md'), 'utf8');
  expect(page).toContain(`/etc/${home}/${folder}/90-unbounded.conf`);
  expect(page).toContain(content.replaceAll(/^#.*\n/gm, ''));
});

test('with our file nothing is left to do', () => {
  expect(stateFor({ [OURS]: ours.content })).toBe('ok');
});

test('what is not set, set in another section, a comment, or no boolean, counts as it would there', () => {
  const { advice } = rowFor({
    'etc/systemd/networkd.conf':
      '[DHCPv4]\nManageForeignRoutes=no\n[Network]\n#ManageForeignRoutes=no\nManageForeignRoutingPolicyRules = off\nManageForeignNextHops=no\nManageForeignNextHops=perhaps\n',
  });
  expect(advice).toMatch(/^ManageForeignRoutes=yes \(default\): /);
});

test.each<[string, Record<string, string>, string]>([
  [
    'of main files the first folder’s counts',
    { 'etc/systemd/networkd.conf': ALL_NO, 'usr/lib/systemd/networkd.conf': ALL_YES },
    'ok',
  ],
  ['the vendor’s main file counts where there is no other', { 'usr/lib/systemd/networkd.conf': ALL_NO }, 'ok'],
  [
    'a file of the vendor’s folder counts over the main file',
    { 'etc/systemd/networkd.conf': ALL_YES, 'usr/lib/systemd/networkd.conf.d/10-a.conf': ALL_NO },
    'ok',
  ],
  [
    'files count by their names, whatever their folders',
    { 'etc/systemd/networkd.conf.d/10-a.conf': ALL_NO, 'usr/lib/systemd/networkd.conf.d/20-b.conf': ALL_YES },
    'disturbs',
  ],
  [
    'of files with one name that of /etc counts',
    { 'etc/systemd/networkd.conf.d/10-a.conf': ALL_NO, 'run/systemd/networkd.conf.d/10-a.conf': ALL_YES },
    'ok',
  ],
  [
    'an empty file masks another',
    {
      'etc/systemd/networkd.conf.d/10-a.conf': '',
      'usr/lib/systemd/networkd.conf.d/10-a.conf': ALL_YES,
      [OURS]: ALL_NO,
    },
    'ok',
  ],
  ['other files of the folder do not count', { 'etc/systemd/networkd.conf.d/10-a.conf.bak': ALL_NO }, 'disturbs'],
])('%s', (_, files, state) => {
  expect(stateFor(files)).toBe(state);
});

test('a file that counts more than ours is named, since ours alone would not help', () => {
  const { advice } = rowFor({
    [OURS]: ALL_NO,
    'etc/systemd/networkd.conf.d/99-site.conf': '[Network]\nManageForeignRoutes=yes\n',
  });
  expect(advice).toBe(
    'ManageForeignRoutes=yes (/etc/systemd/networkd.conf.d/99-site.conf): it removes routes and rules of ours when it starts; take it out of /etc/systemd/networkd.conf.d/99-site.conf, which counts more, and add this file, then: systemctl restart systemd-networkd',
  );
});
