import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { imageFileOf, type Version } from './unbounded-image.ts';

/** What a container runtime makes of the image of our programs. */

export interface Descriptor {
  readonly digest: string;
}
/** Unpacks the image into a folder, which it makes. @returns its layers */
export const unpackImage = (version: Version, folder: string): Descriptor[] => {
  mkdirSync(folder);
  execFileSync('tar', ['-xf', imageFileOf(version), '-C', folder]);
  const read = (file: string): unknown => JSON.parse(readFileSync(join(folder, file), 'utf8'));
  const blob = ({ digest }: Descriptor): string => `blobs/sha256/${digest.replace('sha256:', '')}`;
  const index = read('index.json') as { manifests: [Descriptor] };
  return (read(blob(index.manifests[0])) as { layers: Descriptor[] }).layers;
};

/** As container runtimes do, file capabilities among them. */
const WITH_ATTRIBUTES = ['--xattrs', '--xattrs-include=*', '-xf'];

/** Unpacks layers of an image one over the other. @param image where it was unpacked to */
export const unpackLayers = (image: string, layers: readonly Descriptor[], root: string): void => {
  mkdirSync(root);
  for (const { digest } of layers)
    execFileSync('tar', [...WITH_ATTRIBUTES, join(image, 'blobs/sha256', digest.replace('sha256:', '')), '-C', root]);
};
