import { join } from 'node:path';
import { state } from '../machine/paths.ts';

/** Files of the lab that programs of a tailnet need. */

export const tailnetDir = join(state, 'tailnet');
/** A program of deploy/image, which the lab builds. */
export const podStart = join(tailnetDir, 'pod-start');
/** Of whom the control server's certificate is. */
export const caFile = join(state, 'control-plane/pki/ca.crt');
