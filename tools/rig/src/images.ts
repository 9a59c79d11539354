import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { pack } from 'tar-stream';
import { buffer } from 'node:stream/consumers';
import { binary, imageFile } from './paths.ts';

/**
 * Makes container images without a registry: an OCI image layout (image-spec 1.0) of one layer in a tar, as
 * `ctr images import` takes it. The same input gives the same bytes.
 */

export interface ImageSpec {
  /** Full reference under which pods name the image. */
  readonly reference: string;
  /** Path in the image -> file on this machine. */
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

const tarOf = async (files: ReadonlyArray<readonly [string, Buffer, number]>): Promise<Buffer> => {
  const tar = pack();
  const whole = buffer(tar);
  const folders = new Set<string>();
  for (const [name, content, mode] of files) {
    for (const folder of name
      .split('/')
      .slice(0, -1)
      .map((_, i, parts) => parts.slice(0, i + 1).join('/'))) {
      if (!folders.has(folder)) tar.entry({ name: folder, type: 'directory', mode: 0o755, mtime: new Date(0) });
      folders.add(folder);
    }
    tar.entry({ name, mode, mtime: new Date(0) }, content);
  }
  tar.finalize();
  return whole;
};

const digestOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

const imageTar = async (spec: ImageSpec): Promise<Buffer> => {
  const layer = await tarOf(
    Object.entries(spec.files).map(([path, source]) => [path.replace(/^\//, ''), readFileSync(source), 0o755] as const),
  );
  const blobs: Buffer[] = [layer];
  const describe = (content: Buffer, mediaType: string) => ({
    mediaType,
    digest: `sha256:${digestOf(content)}`,
    size: content.length,
  });
  const add = (value: object, mediaType: string) => {
    const content = Buffer.from(JSON.stringify(value));
    blobs.push(content);
    return describe(content, mediaType);
  };
  const config = add(
    {
      architecture,
      os: 'linux',
      created: '1970-01-01T00:00:00Z',
      config: { Entrypoint: spec.entrypoint, Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin:/'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${digestOf(layer)}`] },
    },
    CONFIG,
  );
  const manifest = add({ schemaVersion: 2, mediaType: MANIFEST, config, layers: [describe(layer, LAYER)] }, MANIFEST);
  const tag = spec.reference.slice(spec.reference.lastIndexOf(':') + 1);
  const annotations = { 'io.containerd.image.name': spec.reference, 'org.opencontainers.image.ref.name': tag };
  const index = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [{ ...manifest, annotations, platform: { os: 'linux', architecture } }],
  };
  return tarOf([
    ['oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}'), 0o644],
    ['index.json', Buffer.from(JSON.stringify(index)), 0o644],
    ...blobs.map((blob) => [`blobs/sha256/${digestOf(blob)}`, blob, 0o644] as const),
  ]);
};

/** Image references that manifests of the lab use. */
export const images: Readonly<Record<string, ImageSpec>> = {
  pause: { reference: 'registry.k8s.io/pause:3.10.2', files: { '/pause': binary('pause') }, entrypoint: ['/pause'] },
  probe: { reference: 'unbounded.local/probe:lab', files: { '/probe': binary('probe') }, entrypoint: ['/probe'] },
  coredns: {
    reference: 'unbounded.local/coredns:lab',
    files: { '/coredns': binary('coredns') },
    entrypoint: ['/coredns'],
  },
};

/** Makes every image that is missing or older than a file in it. */
export const makeImages = async (): Promise<void> => {
  for (const [name, spec] of Object.entries(images)) {
    const file = imageFile(name);
    const newest = Math.max(...Object.values(spec.files).map((source) => statSync(source).mtimeMs));
    if (existsSync(file) && statSync(file).mtimeMs > newest) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.part`, await imageTar(spec));
    renameSync(`${file}.part`, file);
  }
};
