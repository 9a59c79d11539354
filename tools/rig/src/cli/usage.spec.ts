import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bounds, DEFAULTS, flagOf } from '../layout/options.ts';
import { checkout } from '../machine/paths.ts';
import { CHOICES } from './arguments.ts';

const usage = readFileSync(join(checkout, 'tools/rig/usage.txt'), 'utf8');
const lab = (...args: string[]) => spawnSync(join(checkout, 'tools/lab'), args, { encoding: 'utf8' });

test('the usage says what the options may be, and what they are when not given', () => {
  const ruleOf = (name: keyof typeof DEFAULTS): string => {
    if (name in bounds) return ` ${bounds[name as keyof typeof bounds].join('..')}`;
    return name in CHOICES ? ` ${CHOICES[name as keyof typeof CHOICES].join('|')}` : '';
  };
  const names = Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[];
  const lines = usage.split('\n').filter((line) => line.trim().startsWith('--'));
  const said = lines.map((line) => line.trim().split(/ {2,}/)[0]);
  expect(said).toEqual(names.map((name) => `${flagOf(name)}${ruleOf(name)}`));
  for (const [index, name] of names.entries()) {
    if (typeof DEFAULTS[name] === 'boolean') continue;
    expect(lines[index]).toMatch(new RegExp(`[ ;]${DEFAULTS[name]}( when not given)?$`));
  }
});

test.each([
  [['up', '--sites', '9'], '--sites 9: must be an integer from 1 to 8'],
  [['up', '--gateways=many'], '--gateways many: must be an integer from 0 to 4'],
  [['up', '--workers'], '--workers : must be an integer from 0 to 8'],
  [['up', '--ip', 'ipv5'], '--ip ipv5: must be one of ipv4, dual, ipv6'],
  [['up', '--topologie', 'mesh'], 'there is no --topologie; there are --sites --gateways'],
  [['up', '--fabric', '--loss-percent', '51'], '--loss-percent 51: must be an integer from 0 to 50'],
  [['up', '--fabric', '--underlay', 'ipx'], '--underlay ipx: must be one of same, ipv4, dual, ipv6'],
  [['up', '--block-udp', 'some'], '--block-udp some: must be one of all, none'],
  [['up', '--fabric=yes'], '--fabric takes no value'],
  [['up', 'now'], '"now" is not an option; there are --sites'],
])('%j is refused before anything is set up', (args, message) => {
  const { status, stderr } = lab(...args);
  expect(stderr).toContain(`tools/lab up: ${message}`);
  expect(status).toBe(2);
});

test('an unknown command is named', () => {
  const { status, stderr } = lab('upp');
  expect(stderr).toBe(`tools/lab: there is no command "upp"\n${usage}`);
  expect(status).toBe(2);
});

test.each([
  [['--help'], 0],
  [['help'], 0],
  [['up', '--sites', '9', '--help'], 0],
  [['down', '--help'], 0],
  [['verify', '-h'], 0],
  [['exec', '--help'], 0],
])('%j prints the usage and does nothing', (args, want) => {
  const { status, stdout } = lab(...args);
  expect(stdout).toBe(usage);
  expect(status).toBe(want);
});
