import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';

/** Two sites with a gateway and a worker each, and the objects that a cluster would hold for them. */

export type Protocol = 'GENEVE' | 'IPIP' | 'VXLAN' | 'WireGuard';

export interface VmNode {
  readonly name: string;
  readonly site: 1 | 2;
  readonly role: 'gateway' | 'worker';
  readonly internalIp: string;
  /** Of gateways: their address on the WAN. */
  readonly externalIp: string | undefined;
  readonly podCidr: string;
  /** Of the one pod. */
  readonly podIp: string;
  readonly bridgeIp: string;
  readonly privateKey: string;
}

const node = (role: VmNode['role'], site: 1 | 2): VmNode => {
  const [letter, host] = role === 'gateway' ? ['g', 20] : ['w', 30];
  const pods = `100.${64 + site}.${host}`;
  return {
    name: `${letter}${site}`,
    site,
    role,
    internalIp: `10.${site}.0.${host}`,
    externalIp: role === 'gateway' ? `203.0.113.${site}` : undefined,
    podCidr: `${pods}.0/24`,
    podIp: `${pods}.10`,
    bridgeIp: `${pods}.1`,
    privateKey: generatePrivateKey(),
  };
};

export const vmNodes: readonly VmNode[] = ([1, 2] as const).flatMap((site) => [
  node('gateway', site),
  node('worker', site),
]);

const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' };
const ABILITIES = ['GENEVE', 'IPIP', 'None', 'VXLAN', 'WireGuard'];

const listed = (member: VmNode) => ({
  name: member.name,
  wireGuardPublicKey: publicKeyOf(member.privateKey),
  internalIPs: [member.internalIp],
  podCIDRs: [member.podCidr],
  tunnelProtocols: ABILITIES,
});

const siteObjects = (site: 1 | 2, tunnelProtocol: Protocol): object[] => {
  const members = vmNodes.filter((member) => member.site === site);
  const gateways = members.flatMap((member) =>
    member.externalIp === undefined
      ? []
      : [
          {
            ...listed(member),
            siteName: `s${site}`,
            externalIPs: [member.externalIp],
            gatewayWireguardPort: 51820 + site,
          },
        ],
  );
  return [
    {
      ...API,
      kind: 'Site',
      metadata: { name: `s${site}` },
      spec: {
        nodeCidrs: [`10.${site}.0.0/24`],
        podCidrAssignments: [{ cidrBlocks: [`100.${64 + site}.0.0/16`] }],
        tunnelProtocol,
      },
    },
    {
      ...API,
      kind: 'SiteNodeSlice',
      metadata: { name: `s${site}-0` },
      siteName: `s${site}`,
      sliceIndex: 0,
      nodes: members.filter(({ role }) => role === 'worker').map(listed),
    },
    {
      ...API,
      kind: 'GatewayPool',
      metadata: { name: `p${site}` },
      spec: { type: 'External', nodeSelector: { pool: `p${site}` } },
      status: { nodes: gateways },
    },
    {
      ...API,
      kind: 'SiteGatewayPoolAssignment',
      metadata: { name: `a${site}` },
      spec: { sites: [`s${site}`], gatewayPools: [`p${site}`] },
    },
  ];
};

/** What the cluster holds when every link is to use the protocol. */
export const objectsFor = (protocol: Protocol): object[] => [
  ...vmNodes.map((member) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: member.name },
    spec: { podCIDRs: [member.podCidr] },
    status: {
      addresses: [
        { type: 'InternalIP', address: member.internalIp },
        ...(member.externalIp === undefined ? [] : [{ type: 'ExternalIP', address: member.externalIp }]),
      ],
    },
  })),
  ...siteObjects(1, protocol),
  ...siteObjects(2, protocol),
  {
    ...API,
    kind: 'GatewayPoolPeering',
    metadata: { name: 'wan' },
    spec: { gatewayPools: ['p1', 'p2'], tunnelProtocol: protocol },
  },
];
