import { readSetting, writeSetting } from '../../kernel/proc-sys.ts';
import type { DeviceSpec } from './devices.plan.ts';

/**
 * Settings of our devices below /proc/sys/net that live and die with them. udev and systemd-sysctl write some of these after a device
 * appears, so they are looked at in every pass, and when the kernel tells of a change.
 */

type Setting = readonly [family: 'ipv4' | 'ipv6', key: string, value: string];

export const isIpv6 = (address: string): boolean => address.includes(':');

/** @returns whether it was another before */
const write = ({ name }: Pick<DeviceSpec, 'name'>, [family, key, value]: Setting): boolean =>
  writeSetting(`net/${family}/conf/${name}/${key}`, value);

/** Loose reverse-path filtering: replies may come by another tunnel. The kernel takes the larger of this and the one of all devices. */
const LOOSE: Setting = ['ipv4', 'rp_filter', '2'];
/** A pod's or a peer's router advertisement must not give the node routes; forwarding alone does not refuse them where the default is 2. */
const NO_ADVERTISEMENTS: Setting = ['ipv6', 'accept_ra', '0'];
/** Of a device alone it can be off, too. */
const FORWARDING: Setting = ['ipv4', 'forwarding', '1'];

/** What comes in by it is forwarded, though it has no addresses. */
const carriesIpv4 = ({ purpose, addresses }: Pick<DeviceSpec, 'purpose' | 'addresses'>): boolean =>
  purpose === 'echo' || addresses.some((address) => !isIpv6(address));

/** It has no address of IPv6, and its routes need it; nor is it to have one of its own, by which the kernel would speak to it. */
const WITHOUT_ADDRESS: readonly Setting[] = [
  ['ipv6', 'addr_gen_mode', '1'],
  ['ipv6', 'disable_ipv6', '0'],
];

type Configured = Pick<DeviceSpec, 'name' | 'purpose' | 'addresses' | 'ipv6'>;

/** The kernel's ipip devices have no IPv6. */
const isWithoutAddress = ({ purpose, ipv6 }: Omit<Configured, 'name'>): boolean =>
  purpose === 'echo' || (ipv6 === true && purpose !== 'ipip');

const settingsOf = (spec: Omit<Configured, 'name'>): Setting[] => [
  ...(isWithoutAddress(spec) ? WITHOUT_ADDRESS : []),
  NO_ADVERTISEMENTS,
  ...(spec.purpose === 'bridge' ? [] : [LOOSE]),
  ...(carriesIpv4(spec) && readSetting('net/ipv4/ip_forward') === '1' ? [FORWARDING] : []),
];

/** @returns names of the settings that were others: `net.ipv4.conf.vxlan0.rp_filter`. @throws Error when one cannot be written */
export const ensureDeviceSettings = (spec: Configured): string[] =>
  settingsOf(spec)
    .filter((setting) => write(spec, setting))
    .map(([family, key]) => `net.${family}.conf.${spec.name}.${key}`);

const KEEPS_IPV6: ReadonlySet<DeviceSpec['purpose']> = new Set(['bridge', 'echo']);

/** Before it comes up. */
export const prepareDevice = (spec: DeviceSpec): void => {
  ensureDeviceSettings(spec);
  if (!KEEPS_IPV6.has(spec.purpose) && !isWithoutAddress(spec) && !spec.addresses.some(isIpv6))
    write(spec, ['ipv6', 'disable_ipv6', '1']);
};

export const enableIpv6 = (spec: DeviceSpec): void => void write(spec, ['ipv6', 'disable_ipv6', '0']);
