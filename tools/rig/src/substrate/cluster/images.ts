import { existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { type ImageSpec as OciImage, imageTar, type LayerSpec } from '@unbounded/oci';
import { binary, imageFile } from '../../machine/paths.ts';

/** The images of what the lab itself runs in pods: one layer each. */

export interface ImageSpec extends LayerSpec, Omit<OciImage, 'layers'> {
  readonly files: Readonly<Record<string, string>>;
}

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
export const makeImages = async (wanted: Readonly<Record<string, ImageSpec>> = images): Promise<void> => {
  for (const [name, spec] of Object.entries(wanted)) {
    const file = imageFile(name);
    const newest = Math.max(...Object.values(spec.files).map((source) => statSync(source).mtimeMs));
    if (existsSync(file) && statSync(file).mtimeMs > newest) continue;
    mkdirSync(dirname(file), { recursive: true });
    const { files, links, texts, folders, ...image } = spec;
    const layer = { files, ...(links && { links }), ...(texts && { texts }), ...(folders && { folders }) };
    writeFileSync(`${file}.part`, await imageTar({ ...image, layers: [layer] }));
    renameSync(`${file}.part`, file);
  }
};
