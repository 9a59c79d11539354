import { statSync } from 'node:fs';

/** Changes whenever the file does; undefined: there is none. */
export const stampOf = (file: string): string | undefined => {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
};
