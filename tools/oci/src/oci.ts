import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { buffer } from 'node:stream/consumers';
import { type Pack, pack } from 'tar-stream';
import { capabilityRecords, type FileCapability } from './file-capabilities.ts';

/**
 * Makes container images without a registry: an OCI image layout (image-spec 1.0) in a tar, as `ctr images import` and
 * `docker load` take it. The same input gives the same bytes.
 */

/** What one layer holds; paths in the image are absolute. */
export interface LayerSpec {
  /** Path in the image -> file on this machine. Executable there, executable here. */
  readonly files?: Readonly<Record<string, string>>;
  /** Path of one of the files -> what it has when it is run, whoever runs it (capabilities(7), file capabilities). */
  readonly capabilities?: Readonly<Record<string, readonly FileCapability[]>>;
  /** Path in the image -> what it points at. */
  readonly links?: Readonly<Record<string, string>>;
  /** Path in the image -> text. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Empty folders. */
  readonly folders?: readonly string[];
}

export interface ImageSpec {
  /** Full reference under which pods name the image. */
  readonly reference: string;
  /** What changes seldom comes first: a layer that a node has already is not stored again. */
  readonly layers: readonly LayerSpec[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  /** `NAME=value` */
  readonly env?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly workingDir?: string;
}

const LAYER = 'application/vnd.oci.image.layer.v1.tar';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const PATH = 'PATH=/usr/sbin:/usr/bin:/sbin:/bin:/';
const EPOCH = new Date(0);
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

const bytewise = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number => (a < b ? -1 : 1);
const inTar = (path: string): string => path.replace(/^\/+/, '');

interface Entry {
  readonly header: {
    readonly mode: number;
    readonly type?: 'directory' | 'symlink';
    readonly linkname?: string;
    readonly pax?: Record<string, string>;
  };
  readonly content?: () => Buffer;
}

const fileHeader = (source: string, capabilities: readonly FileCapability[] | undefined): Entry['header'] => ({
  mode: statSync(source).mode & 0o111 ? 0o755 : 0o644,
  ...(capabilities ? { pax: capabilityRecords(capabilities) } : {}),
});

const entriesOf = ({
  files = {},
  capabilities = {},
  links = {},
  texts = {},
  folders = [],
}: LayerSpec): [string, Entry][] => [
  ...folders.map((path): [string, Entry] => [inTar(path), { header: { type: 'directory', mode: 0o755 } }]),
  ...Object.entries(files).map(([path, source]): [string, Entry] => [
    inTar(path),
    { header: fileHeader(source, capabilities[path]), content: () => readFileSync(source) },
  ]),
  ...Object.entries(texts).map(([path, text]): [string, Entry] => [
    inTar(path),
    { header: { mode: 0o644 }, content: () => Buffer.from(text) },
  ]),
  ...Object.entries(links).map(([path, linkname]): [string, Entry] => [
    inTar(path),
    { header: { type: 'symlink', linkname, mode: 0o777 } },
  ]),
];

/** Every folder above a path, the highest first. */
const foldersAbove = (path: string): string[] =>
  path
    .split('/')
    .slice(0, -1)
    .map((_, index, parts) => parts.slice(0, index + 1).join('/'));

const tarOf = async (entries: readonly (readonly [string, Entry])[]): Promise<Buffer> => {
  const tar: Pack = pack();
  const whole = buffer(tar);
  const written = new Set<string>();
  const write = (name: string, { header, content }: Entry): void => {
    if (written.has(name)) return;
    written.add(name);
    if (content) tar.entry({ ...header, name, mtime: EPOCH }, content());
    else tar.entry({ ...header, name, mtime: EPOCH });
  };
  for (const [path, entry] of entries) {
    for (const folder of foldersAbove(path)) write(folder, { header: { type: 'directory', mode: 0o755 } });
    write(path, entry);
  }
  tar.finalize();
  return whole;
};

const digestOf = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

/** The image as the bytes of a tar. */
export const imageTar = async (spec: ImageSpec): Promise<Buffer> => {
  const blobs = new Map<string, Buffer>();
  const add = (content: Buffer, mediaType: string) => {
    const digest = digestOf(content);
    blobs.set(digest, content);
    return { mediaType, digest: `sha256:${digest}`, size: content.length };
  };
  const addJson = (value: object, mediaType: string) => add(Buffer.from(JSON.stringify(value)), mediaType);

  const layers = [];
  for (const layer of spec.layers) layers.push(add(await tarOf(entriesOf(layer).toSorted(bytewise)), LAYER));
  const config = addJson(
    {
      architecture,
      os: 'linux',
      created: EPOCH.toISOString(),
      config: {
        ...(spec.entrypoint ? { Entrypoint: spec.entrypoint } : {}),
        ...(spec.command ? { Cmd: spec.command } : {}),
        ...(spec.workingDir === undefined ? {} : { WorkingDir: spec.workingDir }),
        ...(spec.labels ? { Labels: spec.labels } : {}),
        Env: [PATH, ...(spec.env ?? [])],
      },
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
    },
    CONFIG,
  );
  const manifest = addJson({ schemaVersion: 2, mediaType: MANIFEST, config, layers }, MANIFEST);
  const tag = spec.reference.slice(spec.reference.lastIndexOf(':') + 1);
  const annotations = { 'io.containerd.image.name': spec.reference, 'org.opencontainers.image.ref.name': tag };
  const manifests = [{ ...manifest, annotations, platform: { os: 'linux', architecture } }];
  const json = (value: object): Entry => ({
    header: { mode: 0o644 },
    content: () => Buffer.from(JSON.stringify(value)),
  });
  return tarOf([
    ['oci-layout', json({ imageLayoutVersion: '1.0.0' })],
    ['index.json', json({ schemaVersion: 2, mediaType: INDEX, manifests })],
    ...[...blobs].map(([digest, blob]): [string, Entry] => [
      `blobs/sha256/${digest}`,
      { header: { mode: 0o644 }, content: () => blob },
    ]),
  ]);
};
