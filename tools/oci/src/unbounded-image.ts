import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { rootCertificates } from 'node:tls';
import { V8_OPTIONS } from '@unbounded/config/node-command';
import { type ImageSpec, imageTar } from './oci.ts';
import { librariesOf } from './libraries.ts';

/**
 * The one image of all our programs: Node, iptables' own programs, chrt and the shared libraries they need in a layer that seldom changes; in a
 * second one the bundles, the web page, addons, eBPF programs, the CNI plugin, wireguard-go, tailnet-device, agent-start and pod-start. No shell, no
 * package manager. The folders below /unbounded are those of the checkout, which is how the agent finds its parts in both.
 */

const checkout = resolve(import.meta.dirname, '../../..');
const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const assets = join(process.env['UNBOUNDED_ASSETS'] ?? cache, 'bin');
const buildFolder = join(cache, 'image');

const REPOSITORY = 'unbounded.local/unbounded';
export const APPS = [
  'cidr-allocator',
  'site-membership',
  'gateway-health',
  'static-egress',
  'status-aggregator',
  'node-dataplane',
  'node-keeper',
] as const;
/** In the image too, for whoever turns them on: the chart does not run them by itself. */
const OPTIONAL_APPS = ['relay', 'l2-networks', 'tailnet-registrar', 'tailnet'] as const;

/** The version of the checkout. */
export const VERSION = (JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string })
  .version;
/**
 * A stand-in for the next version, to try upgrades with: the same programs under another name, whose eBPF maps are of another
 * layout (libs/bpf-maps shape-next.ts), so that an upgrade and a rollback really migrate.
 */
export const NEXT_VERSION = VERSION.replace(/\d+$/, (patch) => `${Number(patch) + 1}-next`);
/** One of the two. */
export type Version = string;

export const referenceOf = (version: Version): string => `${REPOSITORY}:${version}`;
export const imageFileOf = (version: Version): string => join(cache, 'images', `unbounded-${version}.tar`);

const newest = (files: readonly string[]): number => Math.max(...files.map((file) => statSync(file).mtimeMs));
const isOlder = (made: string, sources: readonly string[]): boolean =>
  !existsSync(made) || statSync(made).mtimeMs < newest(sources);

const nodeProgram = (): string => {
  const program = join(checkout, `node_modules/node-linux-${process.arch}/bin/node`);
  if (!existsSync(program)) throw new Error(`${program} is missing: run tools/setup`);
  return program;
};

const buildStarter = (name: 'agent-start' | 'pod-start'): string => {
  const sources = [`deploy/image/${name}.c`, 'deploy/image/build.sh', 'tools/c-flags.sh'];
  const program = join(buildFolder, name);
  if (
    isOlder(
      program,
      sources.map((source) => join(checkout, source)),
    )
  )
    execFileSync(join(checkout, 'deploy/image/build.sh'), [program, name], { stdio: 'inherit' });
  return program;
};

const bpfFolderOf = (version: Version): string => {
  const folder = join(checkout, 'bpf/build');
  if (version === VERSION) return folder;
  const next = join(folder, 'next-layout');
  if (isOlder(join(next, 'unbounded_encap.bpf.o'), [join(folder, 'unbounded_encap.bpf.o')]))
    execFileSync(join(checkout, 'bpf/build.sh'), [next], {
      stdio: 'inherit',
      env: { ...process.env, NEXT_LAYOUT: '1' },
    });
  return next;
};

/** The agent alone knows the maps. */
const bundleFolderOf = (app: string, version: Version): string => {
  const folder = join(checkout, 'apps', app, 'dist');
  if (version === VERSION || app !== 'node-dataplane') return folder;
  const next = join(folder, 'next-layout');
  if (isOlder(join(next, 'main.mjs'), [join(folder, 'main.mjs'), join(checkout, 'tools/bundle.ts')]))
    execFileSync(join(checkout, 'tools/node'), [join(checkout, 'tools/bundle.ts'), '--next-layout', app], {
      stdio: 'inherit',
    });
  return next;
};

/** What a bundle's folder holds, without source maps. */
const bundleOf = (app: string, version: Version): [string, string][] => {
  const folder = bundleFolderOf(app, version);
  return readdirSync(folder)
    .filter((file) => /\.(mjs|node)$/.test(file))
    .map((file) => [`/unbounded/apps/${app}/dist/${file}`, join(folder, file)]);
};

/** The web page, which status-aggregator finds beside its bundle. */
const pageFiles = (): [string, string][] => {
  const folder = join(checkout, 'apps/dashboard/dist');
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((file) => [`/unbounded/${relative(checkout, file)}`, file]);
};

const POD_START = '/usr/bin/pod-start';
/** The keeper of tailnet devices, who is not root, has no capability itself: it enters pods' network namespaces by this program alone. */
const programCapabilities = { [POD_START]: ['SYS_ADMIN', 'NET_ADMIN'] } as const;

const programFiles = (version: Version): Record<string, string> => {
  const bpf = bpfFolderOf(version);
  return {
    ...Object.fromEntries([...APPS, ...OPTIONAL_APPS].flatMap((app) => bundleOf(app, version))),
    ...Object.fromEntries(
      readdirSync(bpf)
        .filter((file) => file.endsWith('.bpf.o'))
        .map((file) => [`/unbounded/bpf/build/${file}`, join(bpf, file)]),
    ),
    ...Object.fromEntries(pageFiles()),
    '/unbounded/apps/cni/build/unbounded-cni': join(checkout, 'apps/cni/build/unbounded-cni'),
    '/usr/bin/wireguard-go': join(assets, 'wireguard-go'),
    '/usr/bin/tailnet-device': join(assets, 'tailnet-device'),
    '/usr/bin/agent-start': buildStarter('agent-start'),
    [POD_START]: buildStarter('pod-start'),
  };
};

/** Of iptables-save and iptables-restore: one program for nf_tables and one for x_tables, each under the names of all that it does. */
const IPTABLES_BACKENDS = ['nft', 'legacy'] as const;
const iptablesProgram = (backend: string): string => `/usr/sbin/xtables-${backend}-multi`;
const iptablesLinks = Object.fromEntries(
  IPTABLES_BACKENDS.flatMap((backend) =>
    ['iptables', 'ip6tables'].flatMap((name) =>
      ['save', 'restore'].map((action) => [`/usr/sbin/${name}-${backend}-${action}`, iptablesProgram(backend)]),
    ),
  ),
);

/** Matches and targets that iptables' programs load: all of them, since rules of others are printed, too. */
const iptablesExtensions = (): string[] => {
  const folder = ['/usr/lib', ...readdirSync('/usr/lib').map((name) => `/usr/lib/${name}`), '/usr/lib64']
    .map((parent) => join(parent, 'xtables'))
    .find((candidate) => existsSync(join(candidate, 'libxt_mark.so')));
  if (!folder) throw new Error('the extensions of iptables are missing: run tools/setup');
  return readdirSync(folder)
    .filter((file) => file.endsWith('.so'))
    .map((file) => join(folder, file));
};

/** At the paths where they are on this machine. */
const iptablesFiles = (): string[] => [...IPTABLES_BACKENDS.map(iptablesProgram), ...iptablesExtensions()];

/** By which a thread of the agent gets its priority; of util-linux. */
const CHRT = '/usr/bin/chrt';

/** Names are known in files only: glibc asks no service. */
const systemFiles = {
  '/etc/passwd': 'root:x:0:0:root:/:/sbin/nologin\nunbounded:x:65532:65532:unbounded:/:/sbin/nologin\n',
  '/etc/group': 'root:x:0:\nunbounded:x:65532:\n',
  '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
  // Where programs in Go look for the public authorities: those that Node brings.
  '/etc/ssl/certs/ca-certificates.crt': `${rootCertificates.join('\n')}\n`,
};

const specOf = (version: Version, files: Readonly<Record<string, string>>): ImageSpec => {
  const node = nodeProgram();
  const addons = Object.values(files).filter((file) => file.endsWith('.node'));
  const iptables = iptablesFiles();
  return {
    reference: referenceOf(version),
    layers: [
      {
        files: {
          '/usr/bin/node': node,
          [CHRT]: CHRT,
          ...Object.fromEntries(iptables.map((file) => [file, realpathSync(file)])),
          ...librariesOf([node, CHRT, ...addons, ...iptables]),
        },
        links: { '/var/run': '/run', ...iptablesLinks },
        texts: systemFiles,
        folders: ['/tmp', '/run', '/proc', '/sys', '/dev'],
      },
      { files, capabilities: programCapabilities },
    ],
    entrypoint: ['/usr/bin/node', ...V8_OPTIONS],
    env: [`UNBOUNDED_VERSION=${version}`],
    labels: { 'org.opencontainers.image.title': 'unbounded', 'org.opencontainers.image.version': version },
  };
};

/** Makes the image's tar if it is missing or older than something in it, and returns its path. tools/build comes before. */
export const makeUnboundedImage = async (version: Version = VERSION): Promise<string> => {
  const file = imageFileOf(version);
  const files = programFiles(version);
  if (!isOlder(file, [...Object.values(files), nodeProgram(), import.meta.filename])) return file;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(`${file}.part`, await imageTar(specOf(version, files)));
  renameSync(`${file}.part`, file);
  return file;
};
