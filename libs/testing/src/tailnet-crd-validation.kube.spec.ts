import { type KindDefinition, schema, tailnetDeviceKind, tailnetKinds, tailnetSettings } from '@unbounded/crds';
import { coreClients, ensureCrds, resourceOf } from '@unbounded/kube';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { type ApiServer, resetCluster, startApiServer } from './index.ts';
import { objectCreator, refusalOf } from './object-creator.testdata.ts';

/** What the API server takes of a tailnet, and with which words it refuses the rest. */

/** The Mesh gets the settings when a program reads them. */
const settingsKind: KindDefinition = {
  ...{ kind: 'TailnetTest', plural: 'tailnettests', singular: 'tailnettest', shortNames: [], columns: [] },
  ...{ description: 'Settings of a tailnet.', hasStatus: false, body: schema.object({ spec: tailnetSettings }) },
};

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  await resetCluster(api.cluster);
  await ensureCrds(coreClients(api.cluster).crds, [...tailnetKinds, settingsKind]);
});
afterAll(() => api?.stop());

const create = objectCreator(() => api);

const oauth = { oauthClientSecret: 'tailnet' };
const settings = (rest: object = {}): object => ({
  credentials: oauth,
  rules: [{ namespaceSelector: {}, join: 'OnRequest' }],
  ...rest,
});
const ruled = (rest: object): object => settings({ rules: [{ namespaceSelector: {}, join: 'OnRequest', ...rest }] });
const device = (rest: object = {}): object => ({
  ...{ node: 'n1', pod: 'web-0', podUID: '0f6e5b1c-1111-4222-8333-444455556666' },
  ...{ hostName: 'k8s-shop-web-0', tags: ['tag:k8s-pod'], ...rest },
});

test('what is left out of the settings is as for the public service', async () => {
  const created = (await create(settingsKind, settings())) as unknown as { spec: object };
  expect(created.spec).toMatchObject({
    controlURL: 'https://controlplane.tailscale.com',
    apiURL: 'https://api.tailscale.com',
    clusterName: 'k8s',
    defaultTags: ['tag:k8s-pod'],
  });
});

test.each<[what: string, kind: KindDefinition, spec: object]>([
  ['a device', tailnetDeviceKind, device()],
  ['an auth key', settingsKind, settings({ credentials: { authKeySecret: 'key' } })],
  ['no rules', settingsKind, settings({ rules: [] })],
  [
    'everything that settings can have',
    settingsKind,
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
  ['no credentials', settingsKind, { rules: [] }, 'spec.credentials: Required value'],
  [
    'empty credentials',
    settingsKind,
    settings({ credentials: {} }),
    'exactly one of oauthClientSecret and authKeySecret',
  ],
  [
    'both kinds of credentials',
    settingsKind,
    settings({ credentials: { ...oauth, authKeySecret: 'key' } }),
    'exactly one of oauthClientSecret and authKeySecret',
  ],
  ['a Secret with a slash', settingsKind, settings({ credentials: { authKeySecret: 'a/b' } }), 'authKeySecret'],
  ['no list of rules', settingsKind, { credentials: oauth }, 'spec.rules: Required value'],
  [
    'a rule about nobody',
    settingsKind,
    settings({ rules: [{ join: 'OnRequest' }] }),
    'namespaceSelector: Required value',
  ],
  [
    'a rule that decides nothing',
    settingsKind,
    settings({ rules: [{ namespaceSelector: {} }] }),
    'join: Required value',
  ],
  ['a decision that is none', settingsKind, ruled({ join: 'Always' }), 'join', '"OnRequest", "UnlessDeclined"'],
  [
    'a selector that selects by nothing',
    settingsKind,
    ruled({ namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }),
    'values must be given for In and NotIn',
  ],
  [
    'an address without TLS',
    settingsKind,
    settings({ apiURL: 'http://api.example.com' }),
    `"http://api.example.com" ${URL_RIGHT}`,
  ],
  ['an address with a password', settingsKind, settings({ apiURL: 'https://u:p@api.example.com' }), URL_RIGHT],
  [
    'an address with a path',
    settingsKind,
    settings({ controlURL: 'https://example.com/tailnet' }),
    'spec.controlURL',
    URL_RIGHT,
  ],
  ['an address with a query', settingsKind, settings({ controlURL: 'https://example.com/?a=b' }), URL_RIGHT],
  ['a name for an address', settingsKind, settings({ controlURL: 'tailnet.example.com' }), URL_RIGHT],
  [
    'a tag without its prefix',
    settingsKind,
    settings({ defaultTags: ['web'] }),
    'spec.defaultTags[0]',
    '"web" is no tag like tag:k8s-pod',
  ],
  [
    'a tag that begins with a digit',
    settingsKind,
    ruled({ allowedTags: ['tag:1'] }),
    'allowedTags[0]',
    '"tag:1" is no tag',
  ],
  ['a tag twice', settingsKind, settings({ defaultTags: ['tag:a', 'tag:a'] }), 'Duplicate value'],
  ['no default tags', settingsKind, settings({ defaultTags: [] }), 'spec.defaultTags'],
  [
    '17 tags',
    settingsKind,
    settings({ defaultTags: Array.from({ length: 17 }, (_, at) => `tag:t${at}`) }),
    'spec.defaultTags',
    '16',
  ],
  [
    'a cluster in upper case',
    settingsKind,
    settings({ clusterName: 'EU' }),
    '"EU" must be lower-case letters, digits and dashes',
  ],
  ['a device without tags', tailnetDeviceKind, device({ tags: [] }), 'spec.tags'],
  ['a device with a name that is no label', tailnetDeviceKind, device({ hostName: 'web.shop' }), 'spec.hostName'],
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
