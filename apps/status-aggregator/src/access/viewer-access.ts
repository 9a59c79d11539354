import { expiryOf, tokenKey } from './bearer.ts';
import { DECISION_LIMITS, type DecisionLimits, Decisions } from './decisions.ts';
import { counted, type CountReview } from './review-count.ts';
import type { Identity, Reviews } from './reviews.ts';
import type { Verdict } from './verdict.ts';

export interface Viewer {
  readonly username: string;
  readonly expiresAt?: Date | undefined;
}

export interface ViewerAccessOptions {
  readonly reviews: Reviews;
  /** Of the tokens; those of the API server itself when not set. */
  readonly audiences?: readonly string[] | undefined;
  readonly now: () => Date;
  readonly count: CountReview;
  readonly tokenLimits?: Partial<DecisionLimits> | undefined;
  readonly accessLimits?: Partial<DecisionLimits> | undefined;
}

/** Who a token is, when that one may see the status. @throws ReviewUnavailable */
export type ViewerAccess = (token: string) => Promise<Verdict<Viewer>>;

const ALLOWED_MS = 30_000;

const UNAUTHENTICATED = {
  isGranted: false,
  status: 401,
  reason: 'Unauthenticated',
  message: 'the token is not valid',
} as const;

const DENIED = {
  isGranted: false,
  status: 403,
  reason: 'Forbidden',
  message: 'this needs the permission to get "status" of net.unbounded-cloud.io',
} as const;

/** All that RBAC and webhooks decide by: two with the same name may be of different groups. */
const identityKey = ({ username, uid = '', groups = [], extra = {} }: Identity): string =>
  tokenKey(
    JSON.stringify([username, uid, groups.toSorted(), Object.entries(extra).toSorted(([a], [b]) => (a < b ? -1 : 1))]),
  );

export const createViewerAccess = (options: ViewerAccessOptions): ViewerAccess => {
  const { reviews, audiences, now, count, tokenLimits, accessLimits } = options;
  const tokens = new Decisions<Identity>(now, { ...DECISION_LIMITS, ...tokenLimits });
  const accesses = new Decisions<true>(now, { ...DECISION_LIMITS, grantedMs: ALLOWED_MS, ...accessLimits });
  const identify = counted(count, 'viewer-token', async (token: string): Promise<Verdict<Identity>> => {
    const value = await reviews.identify(token, audiences);
    return value === undefined ? UNAUTHENTICATED : { isGranted: true, value, expiresAt: expiryOf(token) };
  });
  const authorize = counted(count, 'viewer-access', async (identity: Identity): Promise<Verdict<true>> =>
    (await reviews.mayViewStatus(identity)) ? { isGranted: true, value: true } : DENIED,
  );
  return async (token) => {
    const identified = await tokens.decide(tokenKey(token), () => identify(token));
    if (!identified.isGranted) return identified;
    const { value: identity, expiresAt } = identified;
    const access = await accesses.decide(identityKey(identity), () => authorize(identity));
    return access.isGranted
      ? { isGranted: true, value: { username: identity.username, expiresAt }, expiresAt }
      : access;
  };
};
