import { type KindDefinition, meshKind, tailnetDeviceKind } from '@unbounded/crds';
import { resourceOf } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, borrowApiServer, resetCluster } from './index.ts';
import { objectCreator, refusalOf } from './object-creator.testdata.ts';

/** What the API server takes of a tailnet, and with which words it refuses the rest. */

let api: ApiServer;
beforeAll(async () => {
  api = await borrowApiServer();
  await resetCluster(api.cluster);
});
afterAll(() => api?.stop());

const create = objectCreator(() => api);

const oauth = { oauthClientSecret: 'tailnet' };
const settings = (rest: object = {}): object => ({
  tailnet: { credentials: oauth, rules: [{ namespaceSelector: {}, join: 'OnRequest' }], ...rest },
});
const ruled = (rest: object): object => settings({ rules: [{ namespaceSelector: {}, join: 'OnRequest', ...rest }] });
const device = (rest: object = {}): object => ({
  ...{ node: 'n1', pod: 'web-0', podUID: '0f6e5b1c-1111-4222-8333-444455556666' },
  ...{ hostName: 'k8s-shop-web-0', tags: ['tag:k8s-pod'] },
  ...{ controlURL: 'https://tailnet.example.com', ...rest },
});

test('what is left out of the settings is as for the public service', async () => {
  const created = (await create(meshKind, settings())) as unknown as { spec: { tailnet: object } };
  expect(created.spec.tailnet).toMatchObject({
    controlURL: 'https://controlplane.tailscale.com',
    apiURL: 'https://api.tailscale.com',
    clusterName: 'k8s',
    defaultTags: ['tag:k8s-pod'],
  });
});

test.each<[what: string, kind: KindDefinition, spec: object]>([
  ['a device', tailnetDeviceKind, device()],
  ['an auth key', meshKind, settings({ credentials: { authKeySecret: 'key' } })],
  ['no rules', meshKind, settings({ rules: [] })],
  [
    'everything that settings can have',
    meshKind,
    settings({
      ...{ controlURL: 'https://tailnet.example.com', apiURL: 'https://192.0.2.1:8443/', clusterName: 'eu-1' },
      defaultTags: ['tag:k8s-pod', 'tag:Eu-1'],
      rules: [
        {
          namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] },
          join: 'UnlessDeclined',
          allowedTags: ['tag:web'],
        },
      ],
    }),
  ],
])('accepts %s', async (_, kind, spec) => {
  await expect(create(kind, spec)).resolves.toBeDefined();
});

const URL_RIGHT = 'is no https URL without user, path or query, like https://tailnet.example.com';

test.each<[what: string, kind: KindDefinition, spec: object, ...texts: string[]]>([
  ['no credentials', meshKind, { tailnet: { rules: [] } }, 'spec.tailnet.credentials: Required value'],
  ['empty credentials', meshKind, settings({ credentials: {} }), 'exactly one of oauthClientSecret and authKeySecret'],
  [
    'both kinds of credentials',
    meshKind,
    settings({ credentials: { ...oauth, authKeySecret: 'key' } }),
    'exactly one of oauthClientSecret and authKeySecret',
  ],
  ['a Secret with a slash', meshKind, settings({ credentials: { authKeySecret: 'a/b' } }), 'authKeySecret'],
  ['no list of rules', meshKind, { tailnet: { credentials: oauth } }, 'spec.tailnet.rules: Required value'],
  ['a rule about nobody', meshKind, settings({ rules: [{ join: 'OnRequest' }] }), 'namespaceSelector: Required value'],
  ['a rule that decides nothing', meshKind, settings({ rules: [{ namespaceSelector: {} }] }), 'join: Required value'],
  ['a decision that is none', meshKind, ruled({ join: 'Always' }), 'join', '"OnRequest", "UnlessDeclined"'],
  [
    'a selector that selects by nothing',
    meshKind,
    ruled({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }),
    'values must be given for In and NotIn',
  ],
  [
    'an address without TLS',
    meshKind,
    settings({ apiURL: 'http://api.example.com' }),
    `"http://api.example.com" ${URL_RIGHT}`,
  ],
  ['an address with a password', meshKind, settings({ apiURL: 'https://u:p@api.example.com' }), URL_RIGHT],
  [
    'an address with a path',
    meshKind,
    settings({ controlURL: 'https://example.com/tailnet' }),
    'spec.tailnet.controlURL',
    URL_RIGHT,
  ],
  ['an address with a query', meshKind, settings({ controlURL: 'https://example.com/?a=b' }), URL_RIGHT],
  ['a name for an address', meshKind, settings({ controlURL: 'tailnet.example.com' }), URL_RIGHT],
  [
    'a tag without its prefix',
    meshKind,
    settings({ defaultTags: ['web'] }),
    'spec.tailnet.defaultTags[0]',
    '"web" is no tag like tag:k8s-pod',
  ],
  [
    'a tag that begins with a digit',
    meshKind,
    ruled({ allowedTags: ['tag:1'] }),
    'allowedTags[0]',
    '"tag:1" is no tag',
  ],
  ['a tag twice', meshKind, settings({ defaultTags: ['tag:a', 'tag:a'] }), 'Duplicate value'],
  ['no default tags', meshKind, settings({ defaultTags: [] }), 'spec.tailnet.defaultTags'],
  [
    '17 tags',
    meshKind,
    settings({ defaultTags: Array.from({ length: 17 }, (_, at) => `tag:t${at}`) }),
    'spec.tailnet.defaultTags',
    '16',
  ],
  [
    'a cluster in upper case',
    meshKind,
    settings({ clusterName: 'EU' }),
    '"EU" must be lower-case letters, digits and dashes',
  ],
  ['a device without tags', tailnetDeviceKind, device({ tags: [] }), 'spec.tags'],
  ['a device with a name that is no label', tailnetDeviceKind, device({ hostName: 'web.shop' }), 'spec.hostName'],
  ['a device that logs in without TLS', tailnetDeviceKind, device({ controlURL: 'http://a.example.com' }), URL_RIGHT],
  ['a device of no pod', tailnetDeviceKind, device({ podUID: '' }), 'spec.podUID'],
])('refuses %s, and says what would be accepted', async (_, kind, spec, ...texts) => {
  const refusal = await refusalOf(create(kind, spec));
  for (const text of texts) expect(refusal).toContain(text);
});

test('a device stays with its pod', async () => {
  await create(tailnetDeviceKind, device(), 'kept');
  const client = api.cluster.client(resourceOf(tailnetDeviceKind));
  const patch = { spec: { podUID: 'another' } };
  const refusal = await refusalOf(client.mergePatch('kept', patch, { namespace: 'default' }));
  expect(refusal).toContain('cannot be changed');
});
