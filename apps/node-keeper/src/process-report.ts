import { keeperProcesses, type KeeperProcesses } from '@unbounded/keeper-protocol';
import type { Logger } from '@unbounded/telemetry';
import type { Supervisor } from './supervisor.ts';

/**
 * Keeps the file that says which processes are to run, and which do: the agent makes metrics of it.
 * @returns to be called with the names of all that are to run
 */
export const createProcessReport = (
  file: string,
  supervisor: Pick<Supervisor, 'running' | 'startsOf'>,
  logger: Logger,
): ((names: Iterable<string>) => void) => {
  let told = '';
  let failure = '';
  return (names) => {
    const running = new Set(supervisor.running());
    const processes: KeeperProcesses['processes'] = Object.fromEntries(
      [...names].map((name) => [name, { isRunning: running.has(name), starts: supervisor.startsOf(name) }]),
    );
    const text = JSON.stringify(processes);
    if (text === told) return;
    try {
      keeperProcesses.write(file, { processes }, { durable: false }); // it says nothing after a reboot
      [told, failure] = [text, ''];
    } catch (error) {
      const { message } = error as Error;
      if (message !== failure) logger.error({ error: message }, 'cannot write which processes run; they do');
      failure = message;
    }
  };
};
