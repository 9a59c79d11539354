/**
 * Makes the image of our programs and prints the path of its tar, for `ctr -n k8s.io images import` or `docker load`.
 *
 * Usage: main.ts [--next]     --next: the stand-in for the next version
 */
import { parseArgs } from 'node:util';
import { makeUnboundedImage, NEXT_VERSION, referenceOf, VERSION } from './unbounded-image.ts';

const { values } = parseArgs({ options: { next: { type: 'boolean', default: false } } });
const version = values.next ? NEXT_VERSION : VERSION;
const file = await makeUnboundedImage(version);
console.error(`${referenceOf(version)} is in`);
console.log(file);
