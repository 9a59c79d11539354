import { readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';

/**
 * Circles of imports between files, those of types too: files in a circle can only be read together. The linter's rule leaves
 * type imports out.
 */

export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** Relative imports of each file. @param root what the paths are relative to */
export const importGraph = (root: string, files: readonly string[]): ImportGraph =>
  new Map(
    files.map((file) => {
      const { importedFiles } = ts.preProcessFile(readFileSync(join(root, file), 'utf8'), true, false);
      const relative = importedFiles.map(({ fileName }) => fileName).filter((name) => name.startsWith('.'));
      return [file, relative.map((name) => normalize(join(dirname(file), name)))];
    }),
  );

/** Sets of files that all import each other, directly or by others (Tarjan's strongly connected components). */
export const findCircles = (graph: ImportGraph): string[][] => {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    lowest.set(file, order.get(file)!);
    open.push(file);
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) visit(next);
      if (open.includes(next)) lowest.set(file, Math.min(lowest.get(file)!, lowest.get(next)!));
    }
    if (lowest.get(file) !== order.get(file)) return;
    const circle = open.splice(open.indexOf(file));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
};
