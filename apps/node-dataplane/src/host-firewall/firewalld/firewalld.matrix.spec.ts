import { until } from '@unbounded/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { passagesOf, shotOf } from '../../connectivity/kernel/boundary-attempts.testdata.ts';
import type { Section } from '../../section.port.ts';
import {
  type FirewalledNode,
  GATEWAY,
  NATIVE_GATEWAY,
  openFirewalledNode,
  WORKER,
} from './firewalled-node.testdata.ts';
import { testFirewalledNode } from './firewalled-node.scenario.ts';

/** The real firewalld at gateways, and what its users do with it. */

describe.each([GATEWAY, NATIVE_GATEWAY])('at a %o behind firewalld', (options) => {
  testFirewalledNode(options);
});

describe('a zone and policies of ours', () => {
  let node: FirewalledNode;
  let section: Section;
  let opened: string[];
  beforeAll(async () => {
    node = await openFirewalledNode(WORKER);
    section = await node.open('Accept');
    await section.pass();
    opened = node.settings();
  }, 60_000);
  afterAll(() => node.close());

  const isOpen = (): boolean => {
    try {
      return node.settings().join() === opened.join();
    } catch {
      return false; // it is not there
    }
  };
  const DISTURBANCES: Readonly<Record<string, () => void | Promise<void>>> = {
    'a reload': () => void node.firewalld.cmd('--reload'),
    'a complete reload': () => void node.firewalld.cmd('--complete-reload'),
    'a restart': () => node.firewalld.restart(),
    'a restart of the bus': () => node.firewalld.restartBus(),
    'a device taken out of the zone': () => void node.firewalld.cmd('--zone=unbounded', '--remove-interface=cbr0'),
    'a device taken out of the zone for good': () =>
      void node.firewalld.cmd('--permanent', '--zone=unbounded', '--remove-interface=cbr0'),
    'an address taken out of a set': () =>
      void node.firewalld.cmd('--ipset=unbounded-peers4', '--remove-entry=10.1.0.31/32'),
    'a rule taken out of a policy': () =>
      void node.firewalld.cmd(
        '--policy=unbounded-forward',
        '--remove-rich-rule=rule family=ipv4 source ipset=unbounded-entries4 accept',
      ),
  };
  test.each(Object.entries(DISTURBANCES))('%s: all is there at once', { timeout: 60_000 }, async (_what, disturb) => {
    expect(isOpen()).toBe(true);
    await disturb();
    await until('all is there', isOpen, 10_000);
    expect(isOpen()).toBe(true);
  });

  test('a peer that comes is let in without a reload, and one that goes is not any more', async () => {
    const traffic = node.traffic.current()!;
    const peer = '10.1.0.77/32';
    const entries = (...which: string[]): string =>
      node.firewalld.cmd(...which, '--ipset=unbounded-peers4', '--get-entries');
    node.firewalld.cmd('--zone=public', '--add-service=ntp'); // at runtime alone: a reload would end it
    node.traffic.set({ ...traffic, peers: [...traffic.peers, '10.1.0.77'] });
    await until('it is in', () => entries().includes(peer), 5000);
    expect(entries('--permanent')).toContain(peer);
    node.traffic.set(traffic);
    await until('it is out', () => !entries().includes(peer), 5000);
    expect(entries('--permanent')).not.toContain(peer);
    expect(node.firewalld.cmd('--zone=public', '--list-services')).toContain('ntp');
  });

  test('what an administrator denies by a rule stays denied', async () => {
    const listed = passagesOf(WORKER).find(({ what, from }) => from === 'lan' && /listed|Site/.test(what))!;
    const shot = shotOf(node.lab, listed, 4);
    expect(await node.lab.shoot(shot)).toEqual([listed.arrives]);
    const change = (...what: string[]): string => node.firewalld.cmd('--permanent', ...what);
    change('--new-policy=deny');
    change('--policy=deny', '--set-priority=20000');
    change('--policy=deny', '--add-ingress-zone=ANY');
    change('--policy=deny', '--add-egress-zone=ANY');
    change('--policy=deny', `--add-rich-rule=rule family=ipv4 source address=${shot.source} drop`);
    node.firewalld.cmd('--reload');
    expect(await node.lab.shoot(shot)).toEqual([]);
    change('--delete-policy=deny');
    node.firewalld.cmd('--reload');
  });

  test('a device in another zone is reported with the commands that take it out', async () => {
    node.firewalld.cmd('--zone=work', '--change-interface=cbr0');
    const problems = async () => (await section.pass()).report.problems.map(({ message }) => message).join();
    await until(
      'it is reported',
      async () => (await problems()).includes('device cbr0 of the overlay in zone work'),
      5000,
    );
    node.firewalld.cmd('--zone=work', '--remove-interface=cbr0');
    await until('all is well', async () => (await problems()) === '' && isOpen(), 10_000);
    expect(isOpen()).toBe(true);
  });
});

test('IPv6 with a check of reverse paths is reported with the setting to change', async () => {
  const node = await openFirewalledNode(WORKER, 'yes');
  const { report } = await (await node.open('Accept')).pass();
  expect(report.problems).toMatchObject([
    { reason: 'HostFirewallBlocks', message: expect.stringContaining('IPv6_rpfilter=no') as string },
  ]);
  await node.close();
});

test('a zone of somebody else with our name is left alone', async () => {
  const node = await openFirewalledNode(WORKER);
  node.firewalld.cmd('--permanent', '--new-zone=unbounded');
  const before = node.settings();
  const { report } = await (await node.open('Accept')).pass();
  expect(report.problems).toMatchObject([
    { reason: 'HostFirewallNotManaged', message: expect.stringContaining('zone unbounded') as string },
  ]);
  await expect(node.cleanUp()).rejects.toThrow('zone unbounded');
  expect(node.settings()).toEqual(before);
  await node.close();
});

test('a firewalld that comes later is opened when it comes', async () => {
  const node = await openFirewalledNode(WORKER);
  await node.firewalld.stop();
  const { report } = await (await node.open('Accept')).pass();
  expect(report.problems).toEqual([]);
  await node.firewalld.start();
  const zones = (): string => node.firewalld.cmd('--get-zones');
  await until('our zone is there', () => zones().includes('unbounded'), 10_000);
  expect(zones()).toContain('unbounded');
  await node.close();
});
