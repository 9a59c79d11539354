import { execFileSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { openPinnedLink } from '@unbounded/libbpf-ts';

/** Programs at devices of this network namespace as the tools see them, and ways to take them away. */

export const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });
export const json = (...argv: string[]): unknown => JSON.parse(run(...argv) || '[]');

/** tcx came with Linux 6.6. */
const [major = 0, minor = 0] = release().split('.').map(Number);
export const HAS_TCX = major > 6 || (major === 6 && minor >= 6);

/** How programs are attached; undefined: the agent's own choice, where that is tcx. */
export const VIA = process.argv[2] === 'clsact' || !HAS_TCX ? 'clsact' : undefined;
export const pinOf = (device: string): string => join(PIN_FOLDER, 'links', device);

const hasFilter = (device: string, direction: 'ingress' | 'egress'): boolean =>
  run('tc', 'filter', 'show', 'dev', device, direction).includes('direct-action');

export const hasProgram = (device: string, direction: 'ingress' | 'egress'): boolean => {
  const link = (json('ip', '-j', 'link', 'show', device) as { ifindex: number }[])[0];
  if (VIA === 'clsact') return hasFilter(device, direction);
  if (!existsSync(pinOf(device))) return false;
  using pinned = openPinnedLink(pinOf(device));
  return pinned.info.ifindex === link?.ifindex;
};

export const detachPinned = (device: string): void => {
  using link = openPinnedLink(pinOf(device));
  link.detach();
};

/** Ways to take a program away from its device. */
export const DETACHMENTS: Readonly<Record<string, () => unknown>> =
  VIA === 'clsact'
    ? {
        'the filter of the source check is deleted': () => run('tc', 'filter', 'del', 'dev', 'vxlan0', 'ingress'),
        'the qdisc of the source check is removed': () => run('tc', 'qdisc', 'del', 'dev', 'vxlan0', 'clsact'),
        'the qdisc of the anchor is removed': () => run('tc', 'qdisc', 'del', 'dev', 'unbounded0', 'clsact'),
      }
    : {
        'the source check is detached': () => detachPinned('vxlan0'),
        'the anchor’s program is detached': () => detachPinned('unbounded0'),
        'the pin of the source check is removed': () => rmSync(pinOf('vxlan0')),
        'the source check is detached and its pin removed': () => {
          detachPinned('vxlan0');
          rmSync(pinOf('vxlan0'));
        },
      };
