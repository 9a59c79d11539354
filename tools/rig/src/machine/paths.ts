import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** The checkout that this file is in. */
export const checkout = resolve(import.meta.dirname, '../../../..');

/** Everything that the tools make outside the checkout is below this folder. */
export const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');

/** Programs built from Go modules, and their images. */
const assets = process.env['UNBOUNDED_ASSETS'] ?? cache;
export const binary = (name: string): string => join(assets, 'bin', name);
export const imageFile = (name: string): string => join(cache, 'images', `${name}.tar`);

/** The running lab's state; gone after `down`. Tests have a lab of another name, so that a lab that is up is not in their way. */
export const state = join(cache, process.env['UNBOUNDED_LAB'] ?? 'lab');
export const controlPlaneDir = join(state, 'control-plane');
export const nodeDir = (node: string): string => join(state, 'nodes', node);
export const logFile = (name: string): string => join(state, 'logs', `${name}.log`);

/** The distribution's programs (Debian). */
export const cniPlugins = '/usr/lib/cni';

export const nodeJs = join(checkout, 'tools/node');
export const appBundle = (app: string): string => join(checkout, 'apps', app, 'dist/main.mjs');
