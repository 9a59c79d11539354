import { MANAGER_DROP_INS } from '@unbounded/config/manager-drop-ins';
import { expect, test } from 'vitest';
import { networkManagerRow } from './network-manager.ts';
import { rootWith } from './settings.testdata.ts';

const ours = MANAGER_DROP_INS.find(({ manager }) => manager === 'NetworkManager')!;
const MAIN = 'etc/NetworkManager/NetworkManager.conf';
const OURS = 'etc/NetworkManager/conf.d/90-unbounded.conf';
const keyfile = (line: string): string => `[keyfile]\n${line}\n`;

const rowFor = (files: Record<string, string>) => {
  using folder = rootWith({ [MAIN]: '[main]\nplugins=keyfile\n', ...files });
  return networkManagerRow(folder.root, true);
};

test('one that does not run disturbs nothing', () => {
  expect(networkManagerRow('/nowhere', false).state).toBe('off');
});

test('without settings all devices are named, the file that changes it is printed, and the command', () => {
  const { state, advice, file } = rowFor({});
  expect(state).toBe('disturbs');
  expect(advice).toBe(
    'unmanaged-devices of [keyfile] does not name cbr0, unbounded0, unbounded-echo, vxlan0, geneve0, ipip0, egress0, l2in0, l2out0, wg5*: add this file, then: systemctl reload NetworkManager',
  );
  expect(file).toEqual({ path: `/${OURS}`, content: ours.content });
});

test('our file is enough, and leaves lists of other files in force', () => {
  expect(rowFor({ [OURS]: ours.content }).state).toBe('ok');
  expect(ours.content).toMatch(/^unmanaged-devices\+=/m);
});

test.each<[string, Record<string, string>, string]>([
  ['everything by a star', { [MAIN]: keyfile('unmanaged-devices=*') }, ''],
  [
    'some by patterns',
    { [MAIN]: keyfile('unmanaged-devices=interface-name:wg*,interface-name:unbounded*;interface-name:cbr?') },
    'vxlan0, geneve0, ipip0, egress0, l2in0, l2out0',
  ],
  ['others by exact names', { [MAIN]: keyfile('unmanaged-devices=*;except:interface-name:=vxlan0') }, 'vxlan0'],
  [
    'a later file begins the list anew',
    {
      [OURS]: ours.content,
      'etc/NetworkManager/conf.d/95-site.conf': keyfile('unmanaged-devices=interface-name:cbr0'),
    },
    'unbounded0, unbounded-echo, vxlan0, geneve0, ipip0, egress0, l2in0, l2out0, wg5*',
  ],
  [
    'a later file takes one out',
    {
      [OURS]: ours.content,
      'etc/NetworkManager/conf.d/95-site.conf': keyfile('unmanaged-devices-=interface-name:ipip0'),
    },
    'ipip0',
  ],
  [
    'the main file counts over the vendor’s',
    {
      'usr/lib/NetworkManager/conf.d/99-a.conf': keyfile('unmanaged-devices=*'),
      [MAIN]: keyfile('unmanaged-devices=*;except:interface-name:cbr0'),
    },
    'cbr0',
  ],
  [
    'a vendor’s file is masked by one of /etc',
    {
      'usr/lib/NetworkManager/conf.d/10-a.conf': keyfile('unmanaged-devices=interface-name:none'),
      'etc/NetworkManager/conf.d/10-a.conf': keyfile('unmanaged-devices=*'),
    },
    '',
  ],
  [
    'another section',
    { [MAIN]: '[device]\nunmanaged-devices=*\n' },
    'cbr0, unbounded0, unbounded-echo, vxlan0, geneve0, ipip0, egress0, l2in0, l2out0, wg5*',
  ],
])('what is unmanaged: %s', (_, files, managed) => {
  const { state, advice } = rowFor(files);
  expect(state).toBe(managed === '' ? 'ok' : 'disturbs');
  if (managed !== '') expect(advice).toContain(`does not name ${managed}: `);
});
