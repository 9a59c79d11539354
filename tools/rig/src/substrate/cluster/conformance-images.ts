import { execFileSync } from 'node:child_process';
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageSpec } from './images.ts';
import { binary } from '../../machine/paths.ts';

/**
 * The images that the suite's pods name, under the names of its manifest, made without a registry: agnhost is built from
 * the suite's own module, the small tools in them are the distribution's.
 */

const REGISTRY = 'registry.k8s.io/e2e-test-images';

/** A program of this machine with the shared libraries that it loads, at the paths where it looks for them. */
const withLibraries = (programs: readonly string[]): Record<string, string> => {
  const files: Record<string, string> = {};
  for (const program of programs) {
    files[program] = realpathSync(program);
    const libraries = execFileSync('ldd', [realpathSync(program)], { encoding: 'utf8' });
    for (const [, library = ''] of libraries.matchAll(/(?:=> )?(\/\S+) \(0x/g)) files[library] = realpathSync(library);
  }
  return files;
};

const busybox = '/bin/busybox';

/** busybox under the names of its applets, but for what the image has of its own. */
const applets = (taken: Readonly<Record<string, unknown>>): Record<string, string> =>
  Object.fromEntries(
    execFileSync(busybox, ['--list'], { encoding: 'utf8' })
      .split('\n')
      .filter(
        (name) =>
          name !== '' &&
          name !== 'busybox' &&
          !['/bin', '/usr/bin', '/sbin', '/usr/sbin'].some((folder) => `${folder}/${name}` in taken),
      )
      .map((name) => [`/bin/${name}`, busybox]),
  );

const users = {
  '/etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n',
  '/etc/group': 'root:x:0:\nnobody:x:65534:\n',
};

/** An image with a shell and the named tools. busybox's own shell would run its applets before any tool: dash it is. */
const toolImage = (reference: string, tools: readonly string[], more: Partial<ImageSpec>): ImageSpec => {
  const files: Record<string, string> = { ...withLibraries(tools), [busybox]: busybox, ...more.files };
  const links: Record<string, string> = { ...more.links };
  if (tools.includes('/bin/dash')) links['/bin/sh'] = '/bin/dash';
  links['/usr/bin/env'] = busybox;
  const taken = { ...files, ...links };
  return {
    entrypoint: [],
    ...more,
    reference: `${REGISTRY}/${reference}`,
    files,
    links: { ...applets(taken), ...links },
    texts: users,
    folders: ['/tmp', '/root', '/uploads', '/var/run'],
  };
};

/** Folder of the suite's module, for the certificate that its TLS server presents. */
const agnhostFolder = (): string => {
  const modules = execFileSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).trim();
  const found = readdirSync(join(modules, 'k8s.io')).find((name) => name.startsWith('kubernetes@'));
  if (!found) throw new Error(`no module k8s.io/kubernetes in ${modules}: run tools/setup conformance`);
  return join(modules, 'k8s.io', found, 'test/images/agnhost');
};

const NETWORK_TOOLS = [
  '/bin/dash',
  '/bin/bash',
  '/usr/bin/curl',
  '/usr/bin/dig',
  '/bin/nc',
  '/usr/bin/getent',
  '/usr/bin/ss',
  '/usr/sbin/ip',
  '/usr/bin/iperf',
  '/bin/ping',
] as const;

export const conformanceImages = (): Record<string, ImageSpec> => {
  const agnhost = agnhostFolder();
  return {
    agnhost: toolImage('agnhost:2.63.0', NETWORK_TOOLS, {
      entrypoint: ['/agnhost'],
      command: ['pause'],
      files: {
        '/agnhost': binary('agnhost'),
        '/localhost.crt': join(agnhost, 'porter/localhost.crt'),
        '/localhost.key': join(agnhost, 'porter/localhost.key'),
      },
      links: { '/agnhost-2': '/agnhost' },
    }),
    'e2e-busybox': toolImage('busybox:1.37.0-1', [], { command: ['sh'] }),
    'e2e-dns': toolImage(
      'glibc-dns-testing:2.0.0',
      ['/bin/dash', '/bin/bash', '/usr/bin/dig', '/usr/bin/nslookup', '/usr/bin/getent'],
      {
        command: ['bash'],
      },
    ),
  };
};
