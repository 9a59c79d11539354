import { z } from 'zod';
import { list } from './fields.ts';
import { protocolFile } from './protocol-file.ts';

/** Why node-keeper refuses units, a reason each; the file is absent when it refuses none. An array has no version. */

/** A keeper reports no more. */
export const MOST_REJECTIONS = 256;

export const rejections = protocolFile({
  name: 'rejections',
  schema: list(z.string(), 4096), // keepers that were built before this library report all
  maxBytes: 1 << 20,
  remedy: 'the agent is older than node-keeper: upgrade node-dataplane',
});
