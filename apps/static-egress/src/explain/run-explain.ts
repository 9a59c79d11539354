import { ConfigError, type ConfigOf, describeConfig, readConfig } from '@unbounded/config';
import { explain, planEgress } from '@unbounded/egress';
import { tryParseAddress } from '@unbounded/ip';
import { serviceCidrs } from '@unbounded/kube';
import { openCluster } from '@unbounded/kube/open-cluster';

import { readServiceCidrs } from '../cluster/service-cidrs.ts';
import { snapshotOf } from '../cluster/snapshot.ts';
import { clusterOptions } from '../static-egress.config.ts';
import { wallTime } from '../wall-time.ts';
import { explanationText } from './explanation-text.ts';
import { readCluster } from './read-cluster.ts';
import { recordedOwners } from './recorded-owners.ts';

const NAME = 'static-egress explain NAMESPACE/POD DESTINATION';
/** As for bad settings. */
const BAD_USE = 2;

interface Question {
  readonly namespace: string;
  readonly name: string;
  readonly destination: NonNullable<ReturnType<typeof tryParseAddress>>;
  readonly config: ConfigOf<typeof clusterOptions>;
}

/** @throws ConfigError */
const readQuestion = ({ argv, env }: Pick<NodeJS.Process, 'argv' | 'env'>): Question => {
  const [pod = '', text = '', ...flags] = argv.slice(3);
  const [namespace = '', name = '', ...rest] = pod.split('/');
  if (namespace === '' || name === '' || rest.length > 0)
    throw new ConfigError([`"${pod}" is not a pod: write NAMESPACE/POD, as in shop/web-0`]);
  const destination = tryParseAddress(text);
  if (!destination) throw new ConfigError([`"${text}" is not a destination: write an address, as in 198.51.100.1`]);
  return { namespace, name, destination, config: readConfig(clusterOptions, { argv: flags, env }) };
};

const answer = async ({
  config,
  destination,
  ...pod
}: Question): Promise<{ readonly text: string; readonly code: number }> => {
  const cluster = openCluster({ kubeconfig: config.kubeconfig });
  try {
    const objects = await readCluster(cluster);
    const owners = recordedOwners(objects);
    const snapshot = snapshotOf(objects, {
      isAgentAlive: (nodeUid) => owners.has(nodeUid),
      serviceCidrs: [...config.serviceCidrs, ...(await readServiceCidrs(cluster.client(serviceCidrs)))],
      now: wallTime(),
    });
    const explanation = explain({ plan: planEgress(snapshot), snapshot }, pod, destination);
    return { text: explanationText(explanation), code: explanation.verdict === 'UnknownPod' ? 1 : 0 };
  } finally {
    cluster.close();
  }
};

/** Says what becomes of a packet, by the planner of the controller and what the controller has written. Returns the exit code. */
export const runExplain = async (process: NodeJS.Process): Promise<number> => {
  if (process.argv.includes('--help')) {
    process.stdout.write(describeConfig(NAME, clusterOptions));
    return 0;
  }
  try {
    const { text, code } = await answer(readQuestion(process));
    process.stdout.write(text);
    return code;
  } catch (error) {
    const isBadUse = error instanceof ConfigError;
    const problems = isBadUse ? error.problems : [(error as Error).message];
    process.stderr.write(problems.map((problem) => `static-egress explain: ${problem}\n`).join(''));
    if (isBadUse) process.stderr.write(`Usage: ${NAME} [FLAG VALUE]...; --help for the flags\n`);
    return isBadUse ? BAD_USE : 1;
  }
};
