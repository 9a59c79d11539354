import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { state } from '../../machine/paths.ts';

/** Nodes whose addresses the lab's cloud provider does not correct: what their kubelets say of themselves stays. */

const folder = join(state, 'unattended');

export const isUnattended = (node: string): boolean => existsSync(join(folder, node));

export const leaveUnattended = (node: string): void => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, node), '');
};

export const attendAgain = (node: string): void => rmSync(join(folder, node), { force: true });
