import { NODE_ECHO_PORT } from '../../checks/node-echo.ts';
import { run } from '../../machine/command.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { inNode, onNode } from '../../node/node.ts';

/** Firewalls as users have them on a node, each by its own programs. */

export interface HostFirewall {
  readonly name: string;
  readonly begin: (node: string) => void;
  /** Whether what we put there so that the overlay passes is in force. */
  readonly isOpen: (node: string) => boolean;
  /** What it holds by its own programs. */
  readonly saved: (node: string) => string;
  /** The same without what is ours. */
  readonly withoutOurs: (saved: string) => string;
  /** Takes away what is ours, as if it had come while no agent was there. */
  readonly takeOurs: (node: string) => void;
  /** What the Node says of it when it is only to be reported. */
  readonly reported: RegExp;
  /** What its users do, and what it makes of its rules then. */
  readonly disturbances: Readonly<Record<string, (node: string) => void>>;
}

/** Mounts a copy of its settings upon them: each node has its own, in its own mount namespace. */
export const ownFiles = (node: string, name: string, folders: readonly string[]): void => {
  const copies = folders.map(
    (folder) =>
      `mkdir -p /srv/${name}${folder}; cp -a ${folder}/. /srv/${name}${folder}; mount --bind /srv/${name}${folder} ${folder}`,
  );
  onNode(node, 'sh', '-ec', `mountpoint -q /srv || mount -t tmpfs own-files /srv; ${copies.join('; ')}`);
};

const IPS = ['iptables', 'ip6tables'] as const;
const input = (node: string, argv: readonly string[], text: string): void =>
  void run([...inNode(node), ...argv], { input: text });

/** Of both families, without counters. */
const savedRules = (node: string): string =>
  IPS.map((ip) => onNode(node, `${ip}-nft-save`, '-t', 'filter'))
    .join('')
    .replaceAll(/^#.*\n|\[\d+:\d+\]/gm, '');

const isOpenIptables = (node: string): boolean => {
  const rules = savedRules(node);
  const refusing = [...rules.matchAll(/^:(FORWARD|INPUT) DROP/gm)].length;
  return [...rules.matchAll(/^-A (FORWARD|INPUT) .*unbounded/gm)].length === refusing;
};

const ofIptables: Pick<HostFirewall, 'isOpen' | 'saved' | 'withoutOurs' | 'takeOurs' | 'reported'> = {
  isOpen: isOpenIptables,
  saved: savedRules,
  withoutOurs: (saved) => saved.replaceAll(/^-A (FORWARD|INPUT) .*unbounded: belongs.*\n/gm, ''),
  takeOurs: (node) => {
    for (const ip of IPS) {
      const saved = onNode(node, `${ip}-nft-save`, '-t', 'filter');
      input(node, [`${ip}-nft-restore`], saved.replaceAll(/^-A (FORWARD|INPUT) .*unbounded: belongs.*\n/gm, ''));
    }
  },
  reported: /chain FORWARD of iptables \(nf_tables\) may drop packets of the overlay: policy DROP/,
};

/** In the order in which its daemon writes them at its start (Docker 20.10), for a bridge docker0 without containers. */
const DOCKER = [
  ':DOCKER - [0:0]',
  ':DOCKER-ISOLATION-STAGE-1 - [0:0]',
  ':DOCKER-ISOLATION-STAGE-2 - [0:0]',
  ':DOCKER-USER - [0:0]',
  '-F DOCKER',
  '-F DOCKER-ISOLATION-STAGE-1',
  '-F DOCKER-ISOLATION-STAGE-2',
  '-A DOCKER-ISOLATION-STAGE-1 -i docker0 ! -o docker0 -j DOCKER-ISOLATION-STAGE-2',
  '-A DOCKER-ISOLATION-STAGE-1 -j RETURN',
  '-A DOCKER-ISOLATION-STAGE-2 -o docker0 -j DROP',
  '-A DOCKER-ISOLATION-STAGE-2 -j RETURN',
  '-A DOCKER-USER -j RETURN',
];
const DOCKER_FORWARD = [
  '-j DOCKER-USER',
  '-j DOCKER-ISOLATION-STAGE-1',
  '-o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  '-o docker0 -j DOCKER',
  '-i docker0 ! -o docker0 -j ACCEPT',
  '-i docker0 -o docker0 -j ACCEPT',
];

/** Its rules go to the head of FORWARD, which gets the policy DROP. */
const startDocker = (node: string): void => {
  for (const ip of IPS) {
    const inserted = DOCKER_FORWARD.map((rule, index) => `-I FORWARD ${index + 1} ${rule}`);
    const lines = ['*filter', ...DOCKER, ...inserted, 'COMMIT', ''];
    input(node, [`${ip}-nft-restore`, '--noflush'], lines.join('\n'));
    onNode(node, `${ip}-nft`, '-P', 'FORWARD', 'DROP');
  }
};

/** The daemon's own rules, as it does not run here: it wants the machine's control groups. */
export const docker: HostFirewall = {
  name: 'Docker',
  ...ofIptables,
  begin: startDocker,
  disturbances: {
    'a restart of its daemon': (node) => {
      for (const ip of IPS)
        for (const rule of DOCKER_FORWARD) onNode(node, `${ip}-nft`, '-D', 'FORWARD', ...rule.split(' '));
      startDocker(node);
    },
    'a flush of all rules': (node) => {
      for (const ip of IPS) onNode(node, `${ip}-nft`, '-F', 'FORWARD');
    },
  },
};

/** Addresses of the nodes of its site. */
export const nodesOfLan = (node: string, layout: LabLayout): string[] => {
  const { site } = layout.nodes.find(({ name }) => name === node)!;
  return layout.nodes.filter((other) => other.site === site).flatMap(({ internalIps }) => internalIps);
};

/** With its settings. */
const UFW_FOLDERS = ['/etc/ufw', '/etc/default'] as const;

/**
 * As its users have it on a node of a cluster: what Kubernetes itself needs between nodes of the LAN is let in, tunnels are not, and nobody
 * else is.
 */
const startUfw = (node: string, layout: LabLayout): void => {
  const lan = nodesOfLan(node, layout);
  ownFiles(node, 'ufw', UFW_FOLDERS);
  for (const address of lan) {
    onNode(node, 'ufw', 'allow', 'proto', 'tcp', 'from', address);
    onNode(node, 'ufw', 'allow', 'proto', 'udp', 'from', address, 'to', 'any', 'port', String(NODE_ECHO_PORT));
  }
  onNode(node, 'ufw', '--force', 'enable');
};

export const ufw = (layout: LabLayout): HostFirewall => ({
  name: 'ufw',
  ...ofIptables,
  begin: (node) => startUfw(node, layout),
  disturbances: {
    'a reload': (node) => void onNode(node, 'ufw', 'reload'),
    'off and on again': (node) => {
      onNode(node, 'ufw', 'disable');
      onNode(node, 'ufw', '--force', 'enable');
    },
  },
});
