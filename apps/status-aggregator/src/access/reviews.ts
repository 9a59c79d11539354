import { ApiError, type Cluster } from '@unbounded/kube';
import type { Logger } from '@unbounded/telemetry';

import { ReviewUnavailable } from './verdict.ts';

/** UserInfo of authentication.k8s.io/v1. */
export interface Identity {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface TokenReviewStatus {
  readonly authenticated?: boolean;
  readonly user?: Identity;
  readonly audiences?: readonly string[];
}

export interface Reviews {
  /** Undefined: the token authenticates nobody, or for another audience. @throws ReviewUnavailable */
  identify(token: string, audiences?: readonly string[]): Promise<Identity | undefined>;
  /** @throws ReviewUnavailable */
  mayViewStatus(identity: Identity): Promise<boolean>;
}

export interface ReviewOptions {
  readonly cluster: Pick<Cluster, 'transport'>;
  readonly logger: Logger;
  /** For one answer of the API server. */
  readonly timeoutMs?: number;
}

/** Who may see the status of the cluster: `get` of this, which is served by nobody and exists for RBAC alone. */
const VIEW = { group: 'net.unbounded-cloud.io', resource: 'status', verb: 'get' } as const;

const REVIEW_TIMEOUT_MS = 5000;

/** Asks the API server: TokenReview and SubjectAccessReview. Errors carry no token: a refusal of the API server may quote its request. */
export const createReviews = ({ cluster, logger, timeoutMs = REVIEW_TIMEOUT_MS }: ReviewOptions): Reviews => {
  const ask = async <S>(group: string, plural: string, kind: string, spec: object): Promise<S> => {
    const [apiVersion, path] = [`${group}/v1`, `/apis/${group}/v1/${plural}`];
    const body = { apiVersion, kind, spec };
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const answer = (await cluster.transport.send({ method: 'POST', path, body, signal })) as { readonly status?: S };
      return answer.status ?? ({} as S);
    } catch (error) {
      const cause = error instanceof ApiError ? `${error.status} ${error.reason}` : (error as Error).name;
      logger.warn({ kind, cause }, 'the API server did not answer a review');
      throw new ReviewUnavailable('ReviewUnavailable');
    }
  };
  return {
    identify: async (token, audiences) => {
      const spec = audiences ? { token, audiences } : { token };
      const status = await ask<TokenReviewStatus>('authentication.k8s.io', 'tokenreviews', 'TokenReview', spec);
      if (status.authenticated !== true || !status.user?.username) return undefined;
      // An authenticator that knows no audiences answers without them: then the token is not for us.
      if (audiences && !audiences.some((audience) => status.audiences?.includes(audience))) return undefined;
      return status.user;
    },
    mayViewStatus: async ({ username: user, uid, groups, extra }) => {
      const spec = { user, uid, groups, extra, resourceAttributes: VIEW };
      const kinds = ['authorization.k8s.io', 'subjectaccessreviews', 'SubjectAccessReview'] as const;
      const status = await ask<{ allowed?: boolean; denied?: boolean }>(...kinds, spec);
      return status.allowed === true && status.denied !== true;
    },
  };
};
