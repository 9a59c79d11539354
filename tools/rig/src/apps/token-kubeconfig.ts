import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { labPki } from '../kubernetes/control-plane.ts';
import { kubeconfigOf } from '../kubernetes/pki.ts';
import { logTail } from '../machine/daemon.ts';

interface Access {
  readonly server: string;
  /** The attendant writes and renews it. */
  readonly tokenFile: string;
  readonly deadlineMs: number;
}

/** Waits for the token of a ServiceAccount and writes a kubeconfig that reads it. @throws Error when there is none in time */
export const writeTokenKubeconfig = async (file: string, { server, tokenFile, deadlineMs }: Access): Promise<void> => {
  for (const end = Date.now() + deadlineMs; !existsSync(tokenFile);) {
    if (Date.now() > end)
      throw new Error(
        `${tokenFile} did not appear in ${deadlineMs / 1000} s; the attendant says:\n${logTail('attendant')}`,
      );
    await delay(50);
  }
  writeFileSync(file, kubeconfigOf(labPki(), server, { tokenFile }), { mode: 0o600 });
};
