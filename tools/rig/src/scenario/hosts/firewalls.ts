import { NODE_ECHO_PORT } from '../../checks/node-echo.ts';
import { run } from '../../machine/command.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { inNode, onNode } from '../../node/node.ts';

/** Firewalls as users have them on a node, each by its own programs. */

export interface HostFirewall {
  readonly name: string;
  begin(node: string): void;
  /** What its users do, and what it makes of its rules then. */
  readonly disturbances: Readonly<Record<string, (node: string) => void>>;
}

const IPS = ['iptables', 'ip6tables'] as const;
const input = (node: string, argv: readonly string[], text: string): void =>
  void run([...inNode(node), ...argv], { input: text });

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

/** Folders with its settings: each node has its own, in its own mount namespace. */
const UFW_FILES = ['/etc/ufw', '/etc/default'] as const;
const ownFiles = (node: string): void => {
  const copies = UFW_FILES.map(
    (folder) => `mkdir -p /srv${folder}; cp -a ${folder}/. /srv${folder}; mount --bind /srv${folder} ${folder}`,
  );
  onNode(node, 'sh', '-ec', `mount -t tmpfs ufw /srv; ${copies.join('; ')}`);
};

/**
 * As its users have it on a node of a cluster: what Kubernetes itself needs between nodes of the LAN is let in, tunnels are not, and nobody
 * else is.
 */
const startUfw = (node: string, layout: LabLayout): void => {
  const { site } = layout.nodes.find(({ name }) => name === node)!;
  const lan = layout.nodes.filter((other) => other.site === site).flatMap(({ internalIps }) => internalIps);
  ownFiles(node);
  for (const address of lan) {
    onNode(node, 'ufw', 'allow', 'proto', 'tcp', 'from', address);
    onNode(node, 'ufw', 'allow', 'proto', 'udp', 'from', address, 'to', 'any', 'port', String(NODE_ECHO_PORT));
  }
  onNode(node, 'ufw', '--force', 'enable');
};

export const ufw = (layout: LabLayout): HostFirewall => ({
  name: 'ufw',
  begin: (node) => startUfw(node, layout),
  disturbances: {
    'a reload': (node) => void onNode(node, 'ufw', 'reload'),
    'off and on again': (node) => {
      onNode(node, 'ufw', 'disable');
      onNode(node, 'ufw', '--force', 'enable');
    },
  },
});

/** Of both families, without counters. */
export const savedRules = (node: string): string =>
  IPS.map((ip) => onNode(node, `${ip}-nft-save`, '-t', 'filter'))
    .join('')
    .replaceAll(/^#.*\n|\[\d+:\d+\]/gm, '');
