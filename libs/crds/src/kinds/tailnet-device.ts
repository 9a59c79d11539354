import { addressText } from '../egress-fields.ts';
import { conditions, DNS_LABEL_PATTERN, nodeName, SPEC, STATUS } from '../fields.ts';
import { conditionColumn, defineKind, type ObjectOf } from '../kind.ts';
import { immutableSpec } from '../l2-fields.ts';
import { boolean, integer, list, object, oneOf, optional, string } from '../schema.ts';
import { serverUrl, tailnetTags } from '../tailnet-fields.ts';

/** An IPv4 and an IPv6 address. */
const MOST_ADDRESSES = 2;
const [LONGEST_ID, LONGEST_MESSAGE, LONGEST_SEALED, LONGEST_TIME] = [128, 512, 1024, 64];
const DEVICE_ID_PATTERN = '^[A-Za-z0-9]+$';

/** Of the node, made for this one record (RFC 7748). */
const x25519Key = string({
  description: 'Base64: X25519 public key.',
  pattern: '^[A-Za-z0-9+/]{43}=$',
  maxLength: 44,
});

export const tailnetDeviceKind = defineKind({
  kind: 'TailnetDevice',
  plural: 'tailnetdevices',
  singular: 'tailnetdevice',
  shortNames: ['tsd'],
  description:
    'A pod as a device of a tailnet: its record, by which the device is removed when the pod is gone, and the view of it. Made by tailnet-registrar, which keeps a finalizer on it until the device is removed; owned by the Pod. Of the feature tailnet.',
  scope: 'Namespaced',
  hasStatus: true,
  selectableFields: ['.spec.node'],
  columns: [
    { name: 'Pod', type: 'string', jsonPath: '.spec.pod' },
    { name: 'Node', type: 'string', jsonPath: '.spec.node' },
    { name: 'Name', type: 'string', jsonPath: '.status.name' },
    { name: 'Addresses', type: 'string', jsonPath: '.status.addresses' },
    { name: 'Tags', type: 'string', jsonPath: '.spec.tags', priority: 1 },
    { name: 'State', type: 'string', jsonPath: '.status.state' },
    { name: 'Path', type: 'string', jsonPath: '.status.path', priority: 1 },
    conditionColumn('Registered', 'Registered', { description: 'It is the device of its pod.', priority: 1 }),
  ],
  body: object({
    spec: object(
      {
        node: nodeName('The node that the pod runs on.'),
        pod: string({ description: 'Name of the Pod, in the same namespace.', minLength: 1, maxLength: 253 }),
        podUID: string({
          description:
            'metadata.uid of the Pod, to which the device belongs: another Pod of the name gets another device.',
          minLength: 1,
          maxLength: 64,
        }),
        hostName: string({
          description: 'The name that the device asks for.',
          minLength: 1,
          maxLength: 63,
          pattern: DNS_LABEL_PATTERN,
        }),
        isNameAsked: optional(
          boolean({
            description:
              'The Pod asks for the name. Pods of another cluster may have such a name, too: of devices with it none is deleted but that of the record.',
          }),
        ),
        tags: tailnetTags('Tags of the device.', 1),
        controlURL: serverUrl('Where the device logs in.'),
      },
      { ...SPEC, rules: [immutableSpec] },
    ),
    status: optional(
      object(
        {
          keyRequest: optional(
            object({ publicKey: x25519Key }, { description: 'Asks for a key, to log in. Written by the node.' }),
          ),
          reportedID: optional(
            string({
              description: 'What the device says that it is at the control server. Written by the node.',
              pattern: DEVICE_ID_PATTERN,
              maxLength: LONGEST_ID,
            }),
          ),
          name: optional(
            string({ description: 'DNS name of the device in the tailnet. Written by the node.', maxLength: 253 }),
          ),
          addresses: optional(
            list(addressText('100.64.0.1 or fd7a:115c:a1e0::1'), {
              description: 'Addresses of the device, one of each family. Written by the node.',
              as: 'set',
              maxItems: MOST_ADDRESSES,
            }),
          ),
          state: optional(
            oneOf(['Starting', 'NeedsLogin', 'NeedsApproval', 'Running', 'Stopped'], {
              description:
                'NeedsLogin: it has no key, or its key is no longer good. NeedsApproval: an administrator has to admit it. Written by the node.',
            }),
          ),
          path: optional(
            string({
              description: 'How most of its peers are reached: direct, or the relay (DERP) that carries it.',
              maxLength: 64,
            }),
          ),
          message: optional(
            string({ description: 'Why it is not Running. Written by the node.', maxLength: LONGEST_MESSAGE }),
          ),
          sealedKey: optional(
            object(
              {
                publicKey: x25519Key,
                sealed: string({
                  description: 'Base64: the key, for whoever has the private key of publicKey (HPKE, RFC 9180).',
                  pattern: '^[A-Za-z0-9+/]+=*$',
                  maxLength: LONGEST_SEALED,
                }),
                expiresAt: string({
                  description: 'Until when it is good (RFC 3339).',
                  format: 'date-time',
                  maxLength: LONGEST_TIME,
                }),
              },
              {
                description:
                  'The key that was asked for. Written by tailnet-registrar, and taken back when it is used.',
              },
            ),
          ),
          keyID: optional(
            string({
              description: 'Of the key at the control server. Written by tailnet-registrar.',
              maxLength: LONGEST_ID,
            }),
          ),
          keysGiven: optional(
            integer({
              description: 'How many keys its node was given. Written by tailnet-registrar.',
              minimum: 0,
              maximum: Number.MAX_SAFE_INTEGER,
            }),
          ),
          deviceID: optional(
            string({
              description:
                'Of the device at the control server, which removes it by that. Written by tailnet-registrar, when it has seen that the device is the one of this record.',
              maxLength: LONGEST_ID,
            }),
          ),
          goneID: optional(
            string({
              description:
                'Of the device that this one was, and that is no more: its node logs in anew. Written by tailnet-registrar.',
              maxLength: LONGEST_ID,
            }),
          ),
          conditions,
        },
        STATUS,
      ),
    ),
  }),
});
export type TailnetDevice = ObjectOf<typeof tailnetDeviceKind>;
