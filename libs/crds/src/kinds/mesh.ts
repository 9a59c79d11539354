import { conditions, SPEC, STATUS } from '../fields.ts';
import { locatorPrefix } from '../l2-fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { tailnetServer, tailnetSettings } from '../tailnet-fields.ts';
import { type CelRule, type Infer, integer, object, oneOf, optional, string } from '../schema.ts';

/** Of all Mesh objects the one with this name counts. */
export const MESH_NAME = 'default';

/** A DNS name of 253 characters, or an IPv6 address in brackets; a colon and 5 digits. */
const LONGEST_ENDPOINT = 259;

const NAME = '[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
const HOST = `(${NAME}([.]${NAME})*[.]?|[[][0-9A-Fa-f:.]{2,45}[]])`;
const PORT = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const RIGHT = 'write HOST:PORT like relay.example.com:3478, 192.0.2.1:3478 or [2001:db8::1]:3478';

const host = "self.replace('[', '').replace(']', '')";
const endpointRules: readonly CelRule[] = [
  {
    rule: `self.matches('^${HOST}:${PORT}$')`,
    message: `must be a host and a port from 1 to 65535: ${RIGHT}`,
    messageExpression: `'"' + self + '" is no host and port from 1 to 65535: ${RIGHT}'`,
  },
  {
    // What has only digits and dots is no name, and what stands in brackets is an IPv6 address.
    rule: `!self.matches('^([0-9.]+|[[].*[]]):[0-9]+$') || isIP(${host}.substring(0, ${host}.lastIndexOf(':')))`,
    message: `must have an address or a name for a host: ${RIGHT}`,
    messageExpression: `'"' + self + '" has neither an address nor a name for a host: ${RIGHT}'`,
  },
];

const external = object(
  {
    endpoint: string({
      description: 'HOST:PORT of the relay, or of the balancer in front of relays.',
      minLength: 1,
      maxLength: LONGEST_ENDPOINT,
      rules: endpointRules,
    }),
    transport: optional(
      oneOf(['tcp', 'tls'], { description: 'tls: the host’s name must be that of the relay’s certificate.' }),
      'tcp',
    ),
  },
  { description: 'A relay outside of the cluster.' },
);

/** The name of a certificate, and of what it stands for: no address, which clients verify as such. */
const serverName = string({
  description: 'The DNS name in the certificate, whatever the address at which nodes reach the relays.',
  minLength: 1,
  maxLength: 253,
  rules: [
    {
      rule: `self.matches('^${NAME}([.]${NAME})*$') && !self.matches('^[0-9.]+$')`,
      message: 'must be a DNS name like relay.example.com',
      messageExpression: `'"' + self + '" is no DNS name like relay.example.com'`,
    },
  ],
});

const managed = object(
  {
    tls: optional(
      object(
        { serverName },
        {
          description:
            'TLS, with the certificate of the Secret "relay-tls" (tls.crt, tls.key) in the relays’ namespace.',
        },
      ),
    ),
    replicas: optional(
      integer({
        description: 'Relays that run in the cluster; by NodePort no more than gateways with an external address.',
        minimum: 0,
        maximum: 100,
      }),
      1,
    ),
    serviceType: optional(
      oneOf(['LoadBalancer', 'NodePort'], { description: 'How nodes outside reach the relays.' }),
      'LoadBalancer',
    ),
    port: optional(
      integer({ description: 'TCP port of the Service and of its relays.', minimum: 1, maximum: 65_535 }),
      3478,
    ),
  },
  { description: 'Relays in the cluster, which gateway-health runs.' },
);

const pathProbe = object(
  {
    intervalMilliseconds: optional(
      integer({ description: 'Time between probes of a direct path.', minimum: 10, maximum: 60_000 }),
      500,
    ),
    detectMultiplier: optional(
      integer({
        description: 'Answered probes after which a link goes direct, and lost ones after which it goes by the relay.',
        minimum: 1,
        maximum: 255,
      }),
      3,
    ),
  },
  { description: 'How fast a link changes between its direct path and the relay.' },
);

const MOST_CA_BYTES = 65_536;
const caBundle = string({
  description:
    'PEM: certificates of the authorities that sign the relay’s certificate; they take the place of those that the nodes know.',
  minLength: 1,
  maxLength: MOST_CA_BYTES,
  rules: [
    {
      rule: `self.contains('-----BEGIN CERTIFICATE-----') && self.contains('-----END CERTIFICATE-----')`,
      message: 'must hold certificates in PEM: -----BEGIN CERTIFICATE----- ... -----END CERTIFICATE-----',
    },
    { rule: `!self.contains('PRIVATE KEY')`, message: 'must hold no private key: everybody can read it here' },
  ],
});
const staticKey = string({
  description:
    'Base64: the relay’s own public key (of its --key-file). Nodes leave a relay that does not prove that it has it. A managed relay takes the private key from the Secret "relay-static-key" (key: as wg genkey prints it).',
  maxLength: 44,
  rules: [
    {
      rule: `self.matches('^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$')`,
      message: 'must be a public key of 32 bytes in base64, as "wg pubkey" prints it',
      messageExpression: `'"' + self + '" is no public key of 32 bytes in base64, as "wg pubkey" prints it'`,
    },
  ],
});

/** CEL: `provider` says which of the two blocks counts, so that one must be there. */
const hasBlock = (provider: 'external' | 'managed', right: string): CelRule => ({
  rule: `self.provider != '${provider}' || has(self.${provider})`,
  message: `must be there, because spec.relay.provider is "${provider}": ${right}`,
  fieldPath: `.${provider}`,
});

const relay = object(
  {
    mode: optional(
      oneOf(['auto', 'always', 'never'], {
        description:
          'auto: a WireGuard link over external addresses goes by the relay while its direct path does not answer. always: such links never go directly. never: no relay.',
      }),
      'auto',
    ),
    provider: oneOf(['external', 'managed'], { description: 'Which of the blocks of the same names counts.' }),
    external: optional(external),
    managed: optional(managed),
    caBundle: optional(caBundle),
    staticKey: optional(staticKey),
    pathProbe: optional(pathProbe),
  },
  {
    description: 'What carries WireGuard where UDP is blocked.',
    rules: [
      {
        rule: `!has(self.caBundle) || (self.provider == 'external' ? self.?external.transport.orValue('') == 'tls' : has(self.managed) && has(self.managed.tls))`,
        message:
          'is for TLS: write external: {transport: "tls", ...}, or managed: {tls: {serverName: "relay.example.com"}}',
        fieldPath: '.caBundle',
      },
      hasBlock('external', 'external: {endpoint: "relay.example.com:3478"}'),
      hasBlock('managed', 'managed: {} runs one relay behind a LoadBalancer'),
    ],
  },
);
export type RelaySpec = Infer<typeof relay>;

const l2 = object(
  { locatorPrefix },
  { description: 'Stretched L2: Networks over nodes of all sites. Absent: no locators.' },
);

export const meshKind = defineKind({
  kind: 'Mesh',
  plural: 'meshes',
  singular: 'mesh',
  shortNames: ['msh'],
  description: `Settings of the whole network. The one named "${MESH_NAME}" counts.`,
  hasStatus: true,
  columns: [
    { name: 'Relay', type: 'string', jsonPath: '.spec.relay.mode' },
    { name: 'Provider', type: 'string', jsonPath: '.spec.relay.provider' },
    { name: 'Endpoint', type: 'string', jsonPath: '.status.relayEndpoint', description: 'Where nodes find the relay.' },
    conditionColumn('Ready', 'RelayReady'),
    conditionColumn('Tailnet Ready', 'TailnetReady', { priority: 1 }),
  ],
  body: object({
    spec: object({ relay: optional(relay), l2: optional(l2), tailnet: optional(tailnetSettings) }, SPEC),
    status: optional(
      object(
        {
          relayEndpoint: optional(
            string({ description: 'HOST:PORT at which nodes outside find the managed relay.', maxLength: 512 }),
          ),
          tailnet: optional(tailnetServer),
          conditions,
        },
        STATUS,
      ),
    ),
  }),
});
export type Mesh = ObjectOf<typeof meshKind>;
