import { addressText } from '../egress-fields.ts';
import { conditions, DNS_LABEL_PATTERN, nodeName, SPEC, STATUS } from '../fields.ts';
import { defineKind } from '../kind.ts';
import { immutableSpec } from '../l2-fields.ts';
import { list, object, oneOf, optional, string } from '../schema.ts';
import { tailnetTags } from '../tailnet-fields.ts';

/** An IPv4 and an IPv6 address. */
const MOST_ADDRESSES = 2;

export const tailnetDeviceKind = defineKind({
  kind: 'TailnetDevice',
  plural: 'tailnetdevices',
  singular: 'tailnetdevice',
  shortNames: ['tsd'],
  description:
    'A pod as a device of a tailnet: its record, by which the device is removed when the pod is gone, and the view of it. Written by the agent of its node and by the registrar; owned by the Pod. Of the feature tailnet.',
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
        tags: tailnetTags('Tags of the device.', 1),
      },
      { ...SPEC, rules: [immutableSpec] },
    ),
    status: optional(
      object(
        {
          deviceID: optional(
            string({ description: 'Of the device at the control server, which removes it by that.', maxLength: 128 }),
          ),
          name: optional(string({ description: 'DNS name of the device in the tailnet.', maxLength: 253 })),
          addresses: optional(
            list(addressText('100.64.0.1 or fd7a:115c:a1e0::1'), {
              description: 'Addresses of the device, one of each family.',
              as: 'set',
              maxItems: MOST_ADDRESSES,
            }),
          ),
          state: optional(
            oneOf(['Starting', 'NeedsLogin', 'NeedsApproval', 'Running', 'Stopped'], {
              description:
                'NeedsLogin: it has no key, or its key is no longer good. NeedsApproval: an administrator has to admit it.',
            }),
          ),
          path: optional(
            string({
              description: 'How most of its peers are reached: direct, or the relay (DERP) that carries it.',
              maxLength: 64,
            }),
          ),
          conditions,
        },
        STATUS,
      ),
    ),
  }),
});
