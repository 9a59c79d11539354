import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { files, root } from '@unbounded/testing/tree';

const sources = files('*.ts', '*.c', '*.h', '*.go').filter((file) => existsSync(join(root, file)));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const packages = files('apps/*/package.json', 'libs/*/package.json');

describe('the repository', () => {
  test('no file or package is a drawer for everything', () => {
    const drawers = /(^|[/.-])(utils?|helpers?|common|shared|misc)([/.-]|$)/;
    expect(files('apps', 'libs', 'bpf', 'tools').filter((file) => drawers.test(file))).toEqual([]);
  });

  test('a source file has one subject: at most 400 lines', () => {
    const long = sources.filter((file) => !file.endsWith('.spec.ts') && !file.includes('/gen/'));
    expect(
      long.map((file) => [file, read(file).split('\n').length] as const).filter(([, lines]) => lines > 401),
    ).toEqual([]);
  });

  test('every app and lib has a README that says in its first line what it is', () => {
    const silent = packages
      .map((file) => file.replace('package.json', 'README.md'))
      .filter((file) => !existsSync(join(root, file)) || !/^# .+: .+/.test(read(file)));
    expect(silent).toEqual([]);
  });

  test('every package says its layer', () => {
    for (const file of packages) {
      const { nx, name } = JSON.parse(read(file)) as { nx?: { tags?: string[] }; name: string };
      expect(
        nx?.tags?.filter((tag) => tag.startsWith('type:')),
        name,
      ).toHaveLength(1);
    }
  });

  test('commands of kubectl in documents work as written: with our namespace, and the slash of a link to a folder', () => {
    const namespaced =
      /^kubectl (delete|rollout|annotate|label|create|get|logs|scale|edit) [^#]*\b(pods?|deployments?|daemonsets?|secrets?|configmaps?)\b/;
    const commands = files('*.md', '*/NOTES.txt').flatMap((file) =>
      [...read(file).matchAll(/\bkubectl [^`]*?(?=`|\n\n|\n\S*kubectl |$)/g)].map(
        ([text]) => `${file}: ${text.replaceAll(/\s+/g, ' ')}`,
      ),
    );
    expect(commands.length).toBeGreaterThan(10);
    const command = (text: string): string => text.slice(text.indexOf('kubectl '));
    const wrong = commands.filter(
      (text) =>
        / deploy\/crds(?!\/)/.test(text) ||
        (namespaced.test(command(text)) && !/ (-n|--namespace) /.test(command(text))),
    );
    expect(wrong).toEqual([]);
  });

  test('versions of dependencies are exact', () => {
    const loose = packages.flatMap((file) => {
      const { dependencies = {}, devDependencies = {} } = JSON.parse(read(file)) as Record<
        string,
        Record<string, string>
      >;
      return Object.entries({ ...dependencies, ...devDependencies }).filter(
        ([, version]) => !/^\d+\.\d+\.\d+/.test(version),
      );
    });
    expect(loose).toEqual([]);
  });

  test('no merge is left half done', () => {
    const texts = files('*.ts', '*.c', '*.h', '*.md', '*.yaml', '*.json', '*.tpl', '*.sh');
    expect(texts.filter((file) => existsSync(join(root, file)) && /^(<{7}|>{7}) /m.test(read(file)))).toEqual([]);
  });

  test('no test is switched off', () => {
    const specs = files('*.spec.ts').filter((file) => existsSync(join(root, file)));
    const off = new RegExp(String.raw`\b(it|test|describe)\.(skip|only|todo|skipIf|runIf)\b`);
    expect(specs.filter((file) => off.test(read(file)))).toEqual([]);
  });

  test('the lock file holds no download addresses', () => {
    expect(read('package-lock.json')).not.toMatch(/"resolved": "https?:/);
  });

  test('every relative link of the guides leads to a file', () => {
    const broken = files('*.md').flatMap((file) =>
      [...read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)]
        .map(([, target]) => join(file, '..', target!))
        .filter((target) => !existsSync(join(root, target)))
        .map((target) => `${file} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test('what a Node states about itself is parsed in libs/membership and nowhere else', () => {
    // The agent writes its own; gateway-health writes the port and names what it asks people for.
    const writers = new Set([
      'apps/node-dataplane/src/connectivity/report.ts',
      'apps/gateway-health/src/gateways.apply.ts',
      'apps/gateway-health/src/pool-conditions.plan.ts',
    ]);
    const reads =
      /annotations\.(wireGuard\w+|tunnelProtocols|features|externalAddress|rotateWireGuardKey)|wg-(next-)?pubkey|tunnel-protocols/;
    const isApart = (file: string): boolean =>
      !/^(apps|libs)\//.test(file) ||
      /^libs\/(membership|crds)\//.test(file) ||
      /\.(spec|scenario|testdata)\.ts$|^libs\/testing\//.test(file);
    expect(sources.filter((file) => !isApart(file) && !writers.has(file) && reads.test(read(file)))).toEqual([]);
  });
});
