import { DEVICES } from './ownership.ts';

/**
 * Files by which the network managers of hosts leave devices, routes and rules of the overlay alone. tools/doctor prints them, and the
 * agent writes them where it is asked to.
 */
export interface ManagerDropIn {
  readonly manager: 'systemd-networkd' | 'NetworkManager';
  /** The name of its process, as the kernel cuts it: 15 characters. */
  readonly process: string;
  /** Below /etc: it is there where the manager is installed. */
  readonly home: string;
  /** Of the file, below the home. */
  readonly folder: string;
  readonly content: string;
  /** The command after which the manager goes by the file, or by its absence. */
  readonly command: string;
}

/** In the order of the managers' files ours comes behind most others, of which the last one counts. */
export const DROP_IN_NAME = '90-unbounded.conf';
/** How a file of ours begins; one without it is its author's. */
export const DROP_IN_MARK = '# Of Unbounded: ';

/** `wg` and a port from 51820 on. */
const WIREGUARD_DEVICES = 'wg5*';
/** Names, and patterns of names, of the devices that NetworkManager is to leave unmanaged. */
export const UNMANAGED_DEVICES: readonly string[] = [
  DEVICES.bridge,
  DEVICES.anchor,
  DEVICES.echo,
  DEVICES.VXLAN,
  DEVICES.GENEVE,
  DEVICES.IPIP,
  DEVICES.egress,
  DEVICES.l2Entry,
  DEVICES.l2Exit,
  WIREGUARD_DEVICES,
];

/** Of `[Network]` in networkd.conf: without them it removes routes, rules and nexthops of others. The last is known since systemd 256. */
export const FOREIGN_SETTINGS = [
  'ManageForeignRoutes',
  'ManageForeignRoutingPolicyRules',
  'ManageForeignNextHops',
] as const;

const header = (manager: string, command: string): string => `${DROP_IN_MARK}${manager} leaves the overlay alone.
# Where the value node-dataplane.networkManagerDropIns of the chart is true, the agent writes this file, also over changes.
# To be rid of it: set that value to false, remove the file, and run: ${command}
# To keep a file of your own here: remove the first line.
`;

const RESTART_NETWORKD = 'systemctl restart systemd-networkd';
const RELOAD_NETWORK_MANAGER = 'systemctl reload NetworkManager';

export const MANAGER_DROP_INS: readonly ManagerDropIn[] = [
  {
    manager: 'systemd-networkd',
    process: 'systemd-network',
    home: 'systemd',
    folder: 'networkd.conf.d',
    command: RESTART_NETWORKD,
    content: `${header('systemd-networkd', RESTART_NETWORKD)}[Network]
# systemd before 256 logs that it does not know ManageForeignNextHops, and ignores it.
${FOREIGN_SETTINGS.map((key) => `${key}=no`).join('\n')}
`,
  },
  {
    manager: 'NetworkManager',
    process: 'NetworkManager',
    home: 'NetworkManager',
    folder: 'conf.d',
    command: RELOAD_NETWORK_MANAGER,
    // "+=": with "=" the lists of other files would count no more.
    content: `${header('NetworkManager', RELOAD_NETWORK_MANAGER)}[keyfile]
unmanaged-devices+=${UNMANAGED_DEVICES.map((name) => `interface-name:${name}`).join(';')}
`,
  },
];
