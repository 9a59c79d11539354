import { execFileSync } from 'node:child_process';
import { createNftables } from '@unbounded/nftables';
import { type Attempt, shotOf } from '../../connectivity/kernel/boundary-attempts.testdata.ts';
import { type BoundaryLab, type LabOptions, openBoundaryLab } from '../../connectivity/kernel/boundary-lab.testdata.ts';
import { devicesOf as devicesOfBed, FAMILIES } from '../../connectivity/kernel/boundary-network.testdata.ts';
import { devicesOf } from '../../connectivity/kernel/firewall.plan.ts';
import { overlayTraffic } from '../../connectivity/kernel/overlay-traffic.plan.ts';
import { DEVICES } from '../../data-path/devices.ts';
import { createSharedTraffic } from '../../kernel/overlay-traffic.ts';
import type { Section } from '../../section.port.ts';
import type { HostFirewallMode } from '../host-firewall.port.ts';
import { hostFirewall } from '../section.ts';
import { sectionsInForce } from '../section-in-force.testdata.ts';
import { openFirewalld, type RealFirewalld } from './firewalld.testdata.ts';

/** The node of the boundary's network behind the real firewalld, with the section that opens it. */

const site = { allowedSourceCidrs: ['10.1.0.99/32', 'fd00:1::99/128'] };
export const WORKER: LabOptions = { role: 'worker', protocol: 'VXLAN', dataplane: 'ebpf', site };
export const GATEWAY: LabOptions = { role: 'gateway', protocol: 'WireGuard', dataplane: 'netlink', site };
export const NATIVE_GATEWAY: LabOptions = { role: 'gateway', protocol: 'None', dataplane: 'ebpf', site };

const PASSED = `table inet passed {
  counter passed { }
  chain c { type filter hook input priority 300; meta l4proto udp counter name passed; }
}`;

export const openFirewalledNode = async (options: LabOptions, reversePath: 'yes' | 'no' = 'no') => {
  const lab: BoundaryLab = await openBoundaryLab(options);
  const netns = lab.ns.node.path;
  const run = (argv: readonly string[], input = ''): string =>
    execFileSync('nsenter', [`--net=${netns}`, ...argv], { encoding: 'utf8', input, stdio: 'pipe' });
  const nft = createNftables({ netnsFd: lab.ns.node.fd });
  run(['nft', '-f', '-'], PASSED);
  const firewalld: RealFirewalld = await openFirewalld(netns, { reversePath });
  const traffic = createSharedTraffic();
  const devices = devicesOf(lab.plan, [...Object.values(devicesOfBed(lab.plan)), DEVICES.echo]);
  traffic.set(overlayTraffic(lab.plan, { tunnels: lab.plan.tunnels, devices, additions: [] }));
  const sections = sectionsInForce({ nft, traffic });
  const open = (mode: HostFirewallMode): Promise<Section> =>
    sections.open(hostFirewall({ hostFirewall: mode, dbusSocket: firewalld.socketPath }));
  const passed = async (): Promise<number> =>
    (await nft.readCounters('inet', 'passed')).find(({ name }) => name === 'passed')!.packets;
  return {
    ...{ lab, run, firewalld, traffic, open, stop: () => sections.stop() },
    cleanUp: () =>
      hostFirewall({ hostFirewall: 'Accept', dbusSocket: firewalld.socketPath }).cleanUp!({
        nft,
        say: () => undefined,
      } as never),
    /** All that is set, on disk and in force. */
    settings: () =>
      ['--list-all-zones', '--list-all-policies', '--get-ipsets']
        .flatMap((what) => [firewalld.cmd(what), firewalld.cmd('--permanent', what)])
        .map((text) => text.split('\n').sort().join('\n')),
    /** Where it arrives, of either family. */
    async arrivals(attempt: Attempt): Promise<string[]> {
      const all = [];
      for (const family of FAMILIES) all.push(...(await lab.shoot(shotOf(lab, attempt, family))));
      return all;
    },
    /** How many packets of UDP to a port of the node pass the filters, of one of either family. */
    async reached(attempt: Omit<Attempt, 'what' | 'to'>): Promise<number> {
      const count = await passed();
      for (const family of FAMILIES) await lab.shoot(shotOf(lab, { ...attempt, to: 'node' }, family));
      return (await passed()) - count;
    },
    async close() {
      await sections.stop();
      firewalld.close();
      nft.close();
      lab.close();
    },
  };
};
export type FirewalledNode = Awaited<ReturnType<typeof openFirewalledNode>>;
