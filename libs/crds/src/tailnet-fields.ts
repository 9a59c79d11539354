import { labelSelector } from './egress-fields.ts';
import { DNS_LABEL_PATTERN, DNS_SUBDOMAIN_PATTERN } from './fields.ts';
import { MAX_TAILNET_RULES, MAX_TAILNET_TAGS } from './names.ts';
import { type CelRule, type Infer, list, object, oneOf, optional, type Schema, string } from './schema.ts';

/** How pods become devices of a tailnet: what Mesh.spec.tailnet is to hold, and fields that it shares with TailnetDevice. */

/** As the control server wants it: "tag:", a letter, then letters, digits and dashes. */
export const TAILNET_TAG_PATTERN = '^tag:[a-zA-Z][a-zA-Z0-9-]{0,45}$';
const LONGEST_TAG = 50;

const tag = string({
  maxLength: LONGEST_TAG,
  rules: [
    {
      rule: `self.matches('${TAILNET_TAG_PATTERN}')`,
      message: 'must be a tag like tag:k8s-pod: a letter behind "tag:", then letters, digits and dashes, 50 characters',
      messageExpression: `'"' + self + '" is no tag like tag:k8s-pod: a letter behind "tag:", then letters, digits and dashes, 50 characters'`,
    },
  ],
});

export const tailnetTags = (description: string, minItems: number) =>
  list(tag, { description, as: 'set', minItems, maxItems: MAX_TAILNET_TAGS });

/** The credentials and the keys of pods go there: never without TLS, never with a password in the address. */
const serverUrlRules: readonly CelRule[] = [
  {
    rule: `isURL(self) && url(self).getScheme() == 'https' && url(self).getHost() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#') && url(self).getEscapedPath() in ['', '/']`,
    message: 'must be an https URL without user, path or query, like https://tailnet.example.com',
    messageExpression: `'"' + self + '" is no https URL without user, path or query, like https://tailnet.example.com'`,
  },
];
export const serverUrl = (description: string): Schema<string> =>
  string({ description, minLength: 1, maxLength: 512, rules: serverUrlRules });

const secretName = (description: string): Schema<string> =>
  string({
    description,
    minLength: 1,
    maxLength: 253,
    pattern: DNS_SUBDOMAIN_PATTERN,
  });

const credentials = object(
  {
    oauthClientSecret: optional(
      secretName('Secret with client-id and client-secret of an OAuth client that may write devices and keys.'),
    ),
    authKeySecret: optional(
      secretName('Secret with an auth key (auth-key) that is reusable, preauthorized and has the default tags.'),
    ),
  },
  {
    description: 'What the registrar has to make devices; in its own namespace.',
    rules: [
      {
        rule: 'has(self.oauthClientSecret) != has(self.authKeySecret)',
        message: 'must have exactly one of oauthClientSecret and authKeySecret: the name of a Secret',
      },
    ],
  },
);

const rule = object(
  {
    namespaceSelector: labelSelector('Namespaces of the pods that the rule is about; empty: all.'),
    join: oneOf(['OnRequest', 'UnlessDeclined'], {
      description: 'OnRequest: pods whose annotation asks for it. UnlessDeclined: all but those that decline.',
    }),
    allowedTags: optional(
      tailnetTags('Tags that a pod may ask for instead of the default ones; absent: none but those.', 1),
    ),
  },
  { description: 'Of all rules the first one counts that selects the namespace of a pod.' },
);

/** What the API server fills in, for values that it has not seen. */
export const TAILNET_DEFAULTS: { readonly clusterName: string; readonly tags: readonly string[] } = {
  clusterName: 'k8s',
  tags: ['tag:k8s-pod'],
};

export const tailnetSettings = object(
  {
    controlURL: optional(serverUrl('Where devices log in.'), 'https://controlplane.tailscale.com'),
    apiURL: optional(serverUrl('Where keys are made and devices are removed.'), 'https://api.tailscale.com'),
    clusterName: optional(
      string({
        description: 'First part of the names of devices.',
        minLength: 1,
        maxLength: 32,
        rules: [
          {
            rule: `self.matches('${DNS_LABEL_PATTERN}')`,
            message: 'must be lower-case letters, digits and dashes, neither first nor last a dash, like k8s',
            messageExpression: `'"' + self + '" must be lower-case letters, digits and dashes, neither first nor last a dash, like k8s'`,
          },
        ],
      }),
      TAILNET_DEFAULTS.clusterName,
    ),
    credentials,
    defaultTags: optional(tailnetTags('Tags of a device whose pod asks for none.', 1), TAILNET_DEFAULTS.tags),
    rules: list(rule, {
      description: 'Who becomes a device; a pod that no rule is about becomes none.',
      as: 'atomic',
      maxItems: MAX_TAILNET_RULES,
    }),
  },
  { description: 'Pods as devices of a tailnet. Absent: none.' },
);
export type TailnetSettings = Infer<typeof tailnetSettings>;

/** In the status of the Mesh. */
export const tailnetServer = object(
  {
    controlURL: serverUrl('Where its devices log in.'),
    apiURL: serverUrl('Where its keys are made and its devices are removed.'),
    credentials,
  },
  {
    description:
      'The tailnet that there are devices in, by which they are removed when the settings name another one or none. Written by tailnet-registrar.',
  },
);
