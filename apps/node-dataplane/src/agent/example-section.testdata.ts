import { ROUTE_PROTOCOLS } from '@unbounded/config/ownership';
import { siteKind } from '@unbounded/crds';
import { baseOf, type BaseChain } from '../kernel/base-chains.ts';
import type { TableContent } from '../kernel/section-table.ts';
import { ensureRoutes } from '../kernel/routes.ts';
import type { SectionType } from '../section.port.ts';
import { startThread } from '../thread/thread.ts';

/**
 * A section as CONTRIBUTING describes it: the prefixes that Sites name in an annotation are unreachable on the node, and packets
 * from them are counted. With a thread that says which prefixes it was told.
 */

/** Of the form that is kept. */
const VERSION = 1;
const ANNOTATION = 'example.net/closed-prefix';

interface Plan {
  readonly prefixes: readonly string[];
}

const isPlan = (value: unknown): value is Plan => Array.isArray((value as Plan | undefined)?.prefixes);

/** How a test disturbs the section. */
export interface Trouble {
  open?: () => Promise<void>;
  concerns?: (namespace: string) => void;
  pass?: () => Promise<void>;
  add?: (signal: AbortSignal) => Promise<void>;
  write?: (signal: AbortSignal) => Promise<void>;
  stop?: () => Promise<void>;
  /** Name of its set. */
  set?: string;
}

const INPUT: BaseChain = { family: 'inet', name: 'input', type: 'filter', hook: 'input', priority: 7 };

const countPackets = (prefixes: readonly string[], set = 'closed'): TableContent => ({
  sets: [{ name: set, type: 'ipv4', elements: prefixes }],
  counters: ['packets'],
  chains: [
    {
      name: INPUT.name,
      base: baseOf(INPUT),
      rules: [
        {
          comment: 'packets of closed prefixes',
          expressions: [
            { match: 'set', field: 'ip.saddr', op: '==', set },
            { do: 'counter', name: 'packets' },
          ],
        },
      ],
    },
  ],
});

/** Longer than anything else holds up the agent. */
export const HOOK_MS = 4000;

export const example = (trouble: Trouble = {}): SectionType => ({
  name: 'example',
  routeProtocol: ROUTE_PROTOCOLS.last,
  baseChains: [INPUT],
  hook: {
    order: 10,
    timeoutMs: HOOK_MS,
    unavailable: 'refuse',
    concerns: ({ namespace }) => {
      trouble.concerns?.(namespace);
      return namespace === 'example';
    },
  },
  async open({ openInputs, kept, net, table, onKernelChange, trigger, logger }) {
    await trouble.open?.();
    const source = openInputs({ sites: siteKind });
    const before = kept.read();
    let plan = before && before.version <= VERSION && isPlan(before.plan) ? before.plan : undefined;
    let heard = '';
    const thread = startThread<{ type: 'apply'; prefixes: readonly string[] }, { type: 'heard'; text: string }>({
      name: 'example',
      what: 'the thread of the example',
      file: new URL('./example-thread.testdata.ts', import.meta.url),
      settings: undefined,
      logger,
      onTold: ({ text }) => {
        heard = text;
        trigger();
      },
      onRestart: trigger,
    });
    onKernelChange(({ subject, change }) => subject === 'route' && change === 'deleted');
    return {
      async pass() {
        await trouble.pass?.();
        const sites = source.snapshot()?.objects.sites;
        if (sites) {
          plan = { prefixes: sites.flatMap(({ metadata }) => metadata.annotations?.[ANNOTATION] ?? []).sort() };
          kept.write({ version: VERSION, plan });
        }
        if (!plan) return { nextPassMs: 5000, report: { problems: [] } };
        const { prefixes } = plan;
        const { error } = await table('inet').replace(countPackets(prefixes, trouble.set));
        const wanted = prefixes.map((dst) => ({ dst, type: 'unreachable', protocol: ROUTE_PROTOCOLS.last }) as const);
        const routes = await ensureRoutes(net, wanted, ROUTE_PROTOCOLS.last);
        await routes.removeStale();
        await thread.call({ type: 'apply', prefixes });
        const problems = [
          ...routes.problems,
          ...routes.foreign,
          ...(error ? [{ reason: 'ExampleFirewallFailed', message: `section example: ${error.message}` }] : []),
        ];
        const condition = { type: 'UnboundedExample', status: 'True', reason: 'Closed', message: heard } as const;
        const report = { problems, conditions: [condition], ...(trouble.write && { write: trouble.write }) };
        return { nextPassMs: 5000, report };
      },
      hook: { add: async (_, signal) => trouble.add?.(signal) },
      async stop() {
        await thread.stop();
        await trouble.stop?.();
      },
    };
  },
});
