import { expiryOf, tokenKey } from './bearer.ts';
import { DECISION_LIMITS, type DecisionLimits, Decisions } from './decisions.ts';
import { counted, type CountReview } from './review-count.ts';
import type { Identity, Reviews } from './reviews.ts';
import type { Verdict } from './verdict.ts';

export const AGENT_AUDIENCE = 'status-aggregator.net.unbounded-cloud.io';
/** Of a token that is bound to a pod: where that pod runs (KEP-4193). */
const NODE_NAME = 'authentication.kubernetes.io/node-name';

export interface AgentAccessOptions {
  readonly reviews: Reviews;
  /** Whose tokens may report. */
  readonly account: { readonly namespace: string; readonly name: string };
  readonly audience?: string;
  readonly now: () => Date;
  readonly count: CountReview;
  readonly limits?: Partial<DecisionLimits>;
}

/** Which node a token reports for. @throws ReviewUnavailable */
export type AgentAccess = (token: string) => Promise<Verdict<string>>;

const UNAUTHENTICATED = {
  isGranted: false,
  status: 401,
  reason: 'Unauthenticated',
  message: 'the token is not valid for this audience',
} as const;

const forbidden = (reason: 'NotAnAgent' | 'NotBoundToNode', message: string) =>
  ({ isGranted: false, status: 403, reason, message }) as const;

const verdictOf = (identity: Identity | undefined, agent: string, token: string): Verdict<string> => {
  if (identity === undefined) return UNAUTHENTICATED;
  if (identity.username !== agent) return forbidden('NotAnAgent', 'this account does not report for nodes');
  const node = identity.extra?.[NODE_NAME]?.[0];
  if (!node) return forbidden('NotBoundToNode', 'the token is not bound to a pod on a node');
  return { isGranted: true, value: node, expiresAt: expiryOf(token) };
};

export const createAgentAccess = (options: AgentAccessOptions): AgentAccess => {
  const { reviews, account, audience = AGENT_AUDIENCE, now, count } = options;
  const agent = `system:serviceaccount:${account.namespace}:${account.name}`;
  const decisions = new Decisions<string>(now, { ...DECISION_LIMITS, ...options.limits });
  const review = counted(count, 'agent-token', async (token: string) =>
    verdictOf(await reviews.identify(token, [audience]), agent, token),
  );
  return (token) => decisions.decide(tokenKey(token), () => review(token));
};
