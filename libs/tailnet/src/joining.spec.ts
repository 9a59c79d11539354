import { tailnetAnnotations, type TailnetSettings } from '@unbounded/crds';
import { describe, expect, test } from 'vitest';
import { RefusedAnnotationError } from './asked-device.ts';
import { type JoiningPod, planDevice } from './joining.ts';

const { join, tags, hostName, start } = tailnetAnnotations;

const settings: TailnetSettings = {
  clusterName: 'eu',
  credentials: { oauthClientSecret: 'tailnet' },
  defaultTags: ['tag:k8s-pod'],
  rules: [
    {
      namespaceSelector: { matchLabels: { team: 'shop' } },
      join: 'OnRequest',
      allowedTags: ['tag:web', 'tag:db'],
    },
    { namespaceSelector: { matchLabels: { team: 'lab' } }, join: 'UnlessDeclined' },
  ],
};

const podIn = (team: string, annotations: Record<string, string> = {}): JoiningPod => ({
  ...{ namespace: `${team}-1`, name: 'web-0' },
  ...{ namespaceLabels: { team }, annotations },
});
const deviceOf = (pod: JoiningPod, mesh: TailnetSettings | undefined = settings) =>
  planDevice(mesh, pod, () => '0123456789abcdef');

describe('a pod becomes a device', () => {
  test('where a rule allows it and it asks', () => {
    expect(deviceOf(podIn('shop', { [join]: 'true' }))).toEqual({
      ...{ hostName: 'eu-shop-1-web-0', tags: ['tag:k8s-pod'], start: 'Immediate' },
    });
    expect(deviceOf(podIn('shop'))).toBeUndefined();
  });

  test('where a rule has all, unless it declines', () => {
    expect(deviceOf(podIn('lab'))).toMatchObject({ hostName: 'eu-lab-1-web-0' });
    expect(deviceOf(podIn('lab', { [join]: 'false' }))).toBeUndefined();
    expect(deviceOf(podIn('lab', { [join]: ' true ' }))).toBeDefined();
  });

  test('with tags, a name and a policy that it asks for', () => {
    const asked = { [join]: 'true', [tags]: 'tag:db, tag:web,tag:db', [hostName]: 'shop-db', [start]: 'WaitForDevice' };
    expect(deviceOf(podIn('shop', asked))).toEqual({
      ...{ hostName: 'shop-db', isNameAsked: true, tags: ['tag:db', 'tag:web'], start: 'WaitForDevice' },
    });
    expect(deviceOf(podIn('lab', { [tags]: 'tag:k8s-pod' }))).toMatchObject({ tags: ['tag:k8s-pod'] });
  });

  test('under its own name also where it asks for that', () => {
    const asked = { [join]: 'true', [hostName]: 'eu-shop-1-web-0' };
    expect(deviceOf(podIn('shop', asked))).toMatchObject({ hostName: 'eu-shop-1-web-0' });
  });

  test('by the first rule that selects its namespace', () => {
    const all = { ...settings, rules: [...settings.rules, { namespaceSelector: {}, join: 'UnlessDeclined' as const }] };
    expect(deviceOf(podIn('shop'), all)).toBeUndefined();
    expect(deviceOf(podIn('other'), all)).toBeDefined();
  });

  test('with what the Mesh has by default where the API server filled in nothing', () => {
    const bare: TailnetSettings = { credentials: {}, rules: [{ namespaceSelector: {}, join: 'UnlessDeclined' }] };
    expect(deviceOf(podIn('lab'), bare)).toMatchObject({ hostName: 'k8s-lab-1-web-0', tags: ['tag:k8s-pod'] });
  });
});

test.each<[string, JoiningPod]>([
  ['no annotation, no rule', podIn('other')],
  ['a decline that no rule is about', podIn('other', { [join]: 'false' })],
  ['other annotations that are wrong', podIn('other', { [tags]: 'web', [start]: 'later' })],
])('%s: the pod is none, and nothing is refused', (_, pod) => {
  expect(deviceOf(pod)).toBeUndefined();
  expect(deviceOf(pod, undefined)).toBeUndefined();
});

const many = Array.from({ length: 17 }, (_, at) => `tag:t${at}`).join(',');

test.each<[what: string, annotations: Record<string, string>, ...texts: string[]]>([
  ['an empty request', { [join]: '' }, `annotation ${join} is ""`, 'must be "true" or "false"'],
  ['yes', { [join]: 'yes' }, `annotation ${join} is "yes"`, 'must be "true" or "false"'],
  ['upper case', { [join]: 'True' }, 'is "True"', 'must be "true" or "false"'],
  ['a number', { [join]: '1' }, 'is "1"', 'must be "true" or "false"'],
  ['no tag', { [tags]: '' }, `annotation ${tags} is ""`, '"" is no tag like tag:web'],
  ['a tag without its prefix', { [tags]: 'web' }, '"web" is no tag like tag:web'],
  ['a comma at the end', { [tags]: 'tag:web,' }, 'is "tag:web,"', '"" is no tag'],
  ['a tag that begins with a digit', { [tags]: 'tag:1web' }, '"tag:1web" is no tag'],
  ['a tag with a space', { [tags]: 'tag:we b' }, '"tag:we b" is no tag'],
  ['a tag with a line break', { [tags]: 'tag:web\ntag:db' }, 'is "tag:web\\ntag:db"'],
  ['17 tags', { [tags]: many }, 'has 17 tags: a device has at most 16'],
  [
    'a tag that its namespace may not have',
    { [tags]: 'tag:web,tag:admin' },
    'tag:admin is not allowed',
    'tag:k8s-pod, tag:web, tag:db',
  ],
  ['an empty name', { [hostName]: '' }, `annotation ${hostName} is ""`, 'must be at most 63 lower-case letters'],
  ['a name with a dot', { [hostName]: 'web.shop' }, 'is "web.shop"'],
  ['a name in upper case', { [hostName]: 'Web' }, 'is "Web"'],
  ['a name that ends with a dash', { [hostName]: 'web-' }, 'is "web-"'],
  ['the name of a pod of another namespace', { [hostName]: 'eu-lab-1-web-0' }, 'names that begin with eu- are those'],
  ['a name of 64 characters', { [hostName]: 'w'.repeat(64) }, `is "${'w'.repeat(60)}…"`],
  ['another policy', { [start]: 'wait' }, `annotation ${start} is "wait"`, 'must be "WaitForDevice" or "Immediate"'],
  ['more text than any value has', { [tags]: 'tag:web,'.repeat(200) }, 'must be at most 1024 characters'],
])('%s is refused, with annotation, value and what would be right', (_, annotations, ...texts) => {
  const act = () => deviceOf(podIn('shop', { [join]: 'true', ...annotations }));
  expect(act).toThrow(RefusedAnnotationError);
  for (const text of texts) expect(act).toThrow(text);
});

test.each<[string, TailnetSettings | undefined, string]>([
  [
    'without a rule for its namespace',
    settings,
    'no rule selects namespace other-1: add one to Mesh.spec.tailnet.rules',
  ],
  ['without a tailnet', undefined, 'there is no Mesh.spec.tailnet: write one'],
])('a pod that asks %s is refused', (_, mesh, text) => {
  const act = () => planDevice(mesh, podIn('other', { [join]: 'true' }), () => '');
  expect(act).toThrow(RefusedAnnotationError);
  expect(act).toThrow(text);
});
