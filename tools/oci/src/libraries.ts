import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';

/**
 * The shared libraries that programs load, at the paths where the loader looks for them (the loader itself among them),
 * each with its file on this machine. A static program has none. @throws Error that names a library that is missing
 */
export const librariesOf = (programs: readonly string[]): Record<string, string> => {
  const libraries: Record<string, string> = {};
  for (const program of programs) {
    const text = execFileSync('ldd', [program], { encoding: 'utf8' });
    const missing = /(\S+) => not found/.exec(text);
    if (missing) throw new Error(`${program} needs ${missing[1]}, which this machine does not have: run tools/setup`);
    for (const [, library = ''] of text.matchAll(/(?:=> )?(\/\S+) \(0x/g)) libraries[library] = realpathSync(library);
  }
  return libraries;
};
