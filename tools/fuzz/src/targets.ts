import { globSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../../..');

export interface Harness {
  /** Of all harnesses: what its file is called without `.fuzz.…`, behind the name of its app or library. */
  readonly name: string;
  readonly file: string;
  readonly language: 'c' | 'typescript';
}

const nameOf = (path: string): string => {
  const [first = '', second = ''] = path.split('/');
  return `${first === 'bpf' ? first : second}-${basename(path).replace(/(\.codec)?\.fuzz\.(c|ts)$/, '')}`;
};

/** Every `*.fuzz.c` and `*.fuzz.ts`, C first. */
export const harnesses = (): Harness[] =>
  ['c', 'ts'].flatMap((ending) =>
    globSync(`{apps,libs,bpf}/**/*.fuzz.${ending}`, {
      cwd: root,
      exclude: (path) => /(^|\/)(node_modules|build|dist)$/.test(path),
    })
      .toSorted()
      .map(
        (path) =>
          ({ name: nameOf(path), file: join(root, path), language: ending === 'c' ? 'c' : 'typescript' }) as const,
      ),
  );
