import { chmodSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { capabilityAttribute } from './file-capabilities.ts';
import { type ImageSpec, imageTar } from './oci.ts';

const work = mkdtempSync(join(tmpdir(), 'unbounded-oci-'));
const program = join(work, 'program');
const note = join(work, 'note');
beforeAll(() => {
  writeFileSync(program, '#!/bin/true\n');
  chmodSync(program, 0o700);
  writeFileSync(note, 'hello');
});
afterAll(() => rmSync(work, { recursive: true, force: true }));

interface Found {
  readonly type: string | null | undefined;
  readonly mode: number | undefined;
  readonly mtime: number | undefined;
  readonly linkname: string | null | undefined;
  readonly pax: unknown;
  readonly content: Buffer;
}

const untar = async (tar: Buffer): Promise<Map<string, Found>> => {
  const found = new Map<string, Found>();
  const reader = extract();
  reader.end(tar);
  for await (const entry of reader) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    const { name, type, mode, mtime, linkname, pax } = entry.header;
    found.set(name.replace(/\/$/, ''), {
      type,
      mode,
      mtime: mtime?.getTime(),
      linkname,
      pax,
      content: Buffer.concat(chunks),
    });
  }
  return found;
};

const spec: ImageSpec = {
  reference: 'r.example/a/b:v1',
  layers: [
    { files: { '/usr/bin/p': program }, links: { '/bin': 'usr/bin' }, folders: ['/run'] },
    { files: { '/etc/note': note }, texts: { '/etc/a': 'A' } },
  ],
  entrypoint: ['/usr/bin/p'],
  env: ['V=1'],
  labels: { l: 'm' },
};

const parse = (blob: Buffer | undefined) => JSON.parse(String(blob)) as Record<string, never>;
const open = async (given: ImageSpec) => {
  const files = await untar(await imageTar(given));
  const blob = (digest: string): Buffer => files.get(`blobs/sha256/${digest.replace('sha256:', '')}`)!.content;
  const index = parse(files.get('index.json')?.content) as unknown as {
    manifests: { digest: string; annotations: Record<string, string> }[];
  };
  const manifest = parse(blob(index.manifests[0]!.digest)) as unknown as {
    config: { digest: string };
    layers: { digest: string; size: number }[];
  };
  const config = parse(blob(manifest.config.digest)) as unknown as { config: object; rootfs: { diff_ids: string[] } };
  return {
    index,
    manifest,
    config,
    layers: await Promise.all(manifest.layers.map(({ digest }) => untar(blob(digest)))),
  };
};

test('an image holds its layers, and says how it is run and under which name', async () => {
  const { index, manifest, config, layers } = await open(spec);
  expect(index.manifests[0]!.annotations['io.containerd.image.name']).toBe('r.example/a/b:v1');
  expect(config.rootfs.diff_ids).toEqual(manifest.layers.map(({ digest }) => digest));
  expect(config.config).toMatchObject({
    Entrypoint: ['/usr/bin/p'],
    Labels: { l: 'm' },
    Env: [expect.stringContaining('PATH='), 'V=1'],
  });
  expect([...layers[0]!.keys()]).toEqual(['bin', 'run', 'usr', 'usr/bin', 'usr/bin/p']);
  expect(layers[0]!.get('bin')).toMatchObject({ type: 'symlink', linkname: 'usr/bin' });
  expect(layers[0]!.get('usr/bin/p')).toMatchObject({ mode: 0o755, content: Buffer.from('#!/bin/true\n') });
  expect(layers[1]!.get('etc/note')).toMatchObject({ mode: 0o644, content: Buffer.from('hello') });
  expect(String(layers[1]!.get('etc/a')!.content)).toBe('A');
});

test('the same content gives the same bytes, whenever its files were written and in whatever order they are named', async () => {
  const first = await imageTar(spec);
  utimesSync(note, 1, 1);
  const [, last] = spec.layers;
  const turned = { ...last!, texts: {}, files: { '/etc/note': note, '/etc/a': join(work, 'a') } };
  writeFileSync(join(work, 'a'), 'A');
  expect(first.equals(await imageTar({ ...spec, layers: [spec.layers[0]!, turned] }))).toBe(true);
});

test('images that share their first layer share its digest', async () => {
  const [one, two] = await Promise.all([
    open(spec),
    open({ ...spec, reference: 'r.example/a/b:v2', env: ['V=2'], layers: [spec.layers[0]!, {}] }),
  ]);
  expect(two.manifest.layers[0]).toEqual(one.manifest.layers[0]);
  expect(two.manifest.layers[1]).not.toEqual(one.manifest.layers[1]);
  expect(two.manifest.config.digest).not.toBe(one.manifest.config.digest);
});

test('a file that is missing is named', async () => {
  await expect(imageTar({ ...spec, layers: [{ files: { '/x': join(work, 'absent') } }] })).rejects.toThrow('absent');
});

const PODS = ['SYS_ADMIN', 'NET_ADMIN'] as const;

test('file capabilities are those that setcap cap_sys_admin,cap_net_admin=ep writes', () => {
  expect(capabilityAttribute(PODS).toString('hex')).toBe('0100000200102000000000000000000000000000');
  expect(capabilityAttribute(['NET_ADMIN']).toString('hex')).toBe('0100000200100000000000000000000000000000');
});

test('a file has its capabilities in the image, and no other has any', async () => {
  const layer = { files: { '/usr/bin/p': program, '/usr/bin/q': program }, capabilities: { '/usr/bin/p': PODS } };
  const [found] = (await open({ ...spec, layers: [layer] })).layers;
  const { pax, ...rest } = found!.get('usr/bin/p')!;
  expect(Buffer.from((pax as Record<string, string>)['SCHILY.xattr.security.capability']!, 'latin1')).toEqual(
    capabilityAttribute(PODS),
  );
  expect({ ...rest, pax: null }).toEqual(found!.get('usr/bin/q'));
  expect(rest).toMatchObject({ mode: 0o755, content: Buffer.from('#!/bin/true\n') });
});
