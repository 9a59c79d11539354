import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeUnboundedImage, NEXT_VERSION, VERSION } from './unbounded-image.ts';
import { unpackImage, unpackLayers } from './unpacked-image.testdata.ts';

/** Where the agent of an unpacked image says that it keeps its maps. */
const pinsOf = (root: string): string | undefined => {
  const agent = [root, '/usr/bin/node', '/unbounded/apps/node-dataplane/dist/main.mjs', '--help'];
  return /\/unbounded\/v\d+/.exec(execFileSync('chroot', agent, { encoding: 'utf8' }))?.[0];
};

test('the image of the next version shares the layer with Node, and has another layout of the eBPF maps', async () => {
  const work = mkdtempSync(join(tmpdir(), 'unbounded-image-'));
  try {
    const [now, next] = await Promise.all(
      [VERSION, NEXT_VERSION].map(async (version) => {
        await makeUnboundedImage(version);
        const [image, root] = [join(work, version), join(work, `${version}-root`)];
        const layers = unpackImage(version, image);
        unpackLayers(image, layers, root);
        const object = readFileSync(join(root, 'unbounded/bpf/build/unbounded_encap.bpf.o'));
        return { layers, object, pins: pinsOf(root) };
      }),
    );
    expect(next!.layers[0]).toEqual(now!.layers[0]);
    expect(next!.object.equals(now!.object)).toBe(false);
    expect(now!.pins).toMatch(/^\/unbounded\/v\d+$/);
    expect(next!.pins).toMatch(/^\/unbounded\/v\d+$/);
    expect(next!.pins).not.toBe(now!.pins);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
