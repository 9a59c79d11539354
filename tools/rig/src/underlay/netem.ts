import { inNamespace, run, tryRun } from '../machine/command.ts';
import { switchPort } from './underlay.ts';
import { hasNetem } from '../machine/kernel.ts';
import { type LabLayout, routerName } from '../layout/layout.ts';
import { flagOf, IMPAIRMENTS, isImpaired, type LabOptions } from '../layout/options.ts';

/** Delay, loss and reordering on the links between the sites, by the kernel's netem (tc-netem(8)). */

const netemOf = ({ delayMs, lossPercent, reorderPercent }: LabOptions): string[] => [
  'netem',
  ...(delayMs > 0 ? ['delay', `${delayMs}ms`] : []),
  ...(lossPercent > 0 ? ['loss', `${lossPercent}%`] : []),
  ...(reorderPercent > 0 ? ['reorder', `${reorderPercent}%`] : []),
];

const asked = (options: LabOptions): string =>
  IMPAIRMENTS.filter((name) => options[name] > 0)
    .map((name) => `${flagOf(name)} ${options[name]}`)
    .join(' ');

/** @throws Error when the layout wants what this kernel cannot do; nothing is changed */
export const checkNetem = ({ options }: LabLayout): void => {
  if (!isImpaired(options) || hasNetem()) return;
  throw new Error(
    `${asked(options)}: this kernel has no netem (module sch_netem); in the virtual machine there is one: tools/vm/run -- sh -c 'tools/lab up --fabric ${asked(options)} && tools/lab verify'`,
  );
};

/** Ports of the WAN's switch that lead to a site: each packet between two sites leaves by exactly one of them. */
const portsToSites = (layout: LabLayout): { namespace: string; port: string }[] => [
  ...layout.sites.map(({ name }) => switchPort(layout, routerName(name), 'wan0')),
  ...layout.nodes
    .filter(({ external }) => external?.by === 'interface')
    .map(({ name }) => switchPort(layout, name, 'eth1')),
];

/** Makes the links between sites as the layout wants them, whatever they were. */
export const impair = (layout: LabLayout): void => {
  for (const { namespace, port } of portsToSites(layout)) {
    const qdisc = (verb: string, ...more: string[]): string[] => [
      ...inNamespace(namespace),
      ...['tc', 'qdisc', verb, 'dev', port, 'root', ...more],
    ];
    if (isImpaired(layout.options)) run(qdisc('replace', ...netemOf(layout.options)));
    else tryRun(qdisc('delete'));
  }
};
