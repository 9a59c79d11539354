import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { NFT_GUARD_TABLE } from '@unbounded/config/ownership';
import { GATEWAY, type Host, POD } from './attempts.testdata.ts';
import { run } from './guard-network.testdata.ts';

/** The real CNI plug-in, as a container runtime calls it, and what others do to the guard's table. */

const plugin = process.argv[3]!;

export const cni = async (socket: string, command: string, name: string, host?: Host & { readonly veth: string }) => {
  const interfaces = host && [
    { name: 'cbr0', mac: GATEWAY.mac },
    { name: host.veth, mac: '02:11:11:11:11:11' },
    { name: 'eth0', mac: host.mac, sandbox: `/run/netns/${name}` },
  ];
  const ips = host && [
    { address: `${host.v4}/24`, interface: 2 },
    { address: `${host.v6}/64`, interface: 2 },
  ];
  const config = {
    cniVersion: '1.0.0',
    name: 'unbounded',
    type: 'unbounded-cni',
    ...(host && { prevResult: { interfaces, ips } }),
  };
  const env = {
    UNBOUNDED_CNI_SOCKET: socket,
    CNI_COMMAND: command,
    CNI_CONTAINERID: name,
    CNI_IFNAME: 'eth0',
    CNI_NETNS: `/run/netns/${name}`,
    CNI_ARGS: `K8S_POD_NAMESPACE=default;K8S_POD_NAME=${name}`,
  };
  const child = spawn(plugin, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)));
  child.stdin.end(JSON.stringify(config));
  const output = await text(child.stdout);
  return { code: await ended, output };
};

export const portsIn = (): number => {
  const listing = JSON.parse(run('nft', '-j', 'list', 'set', 'bridge', NFT_GUARD_TABLE, 'ports')) as {
    nftables: { set?: { elem?: unknown[] } }[];
  };
  return listing.nftables.find(({ set }) => set)!.set!.elem?.length ?? 0;
};

export const DRIFTS: Readonly<Record<string, readonly string[]>> = {
  'the table is deleted': ['delete', 'table', 'bridge', NFT_GUARD_TABLE],
  'the ruleset is flushed': ['flush', 'ruleset'],
  'the pod’s MAC is deleted': ['delete', 'element', 'bridge', NFT_GUARD_TABLE, 'macs', `{ veth0 . ${POD.mac} }`],
  'the pod’s address is deleted': [
    'delete',
    'element',
    'bridge',
    NFT_GUARD_TABLE,
    'ipv4',
    `{ veth0 . ${POD.mac} . ${POD.v4} }`,
  ],
  'the pod’s port is deleted': ['delete', 'element', 'bridge', NFT_GUARD_TABLE, 'ports', '{ veth0 }'],
};
