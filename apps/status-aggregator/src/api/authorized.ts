import { ReviewUnavailable, type Verdict } from '../access/verdict.ts';
import { Refusal } from './refusal.ts';

const REVIEW_AGAIN_S = 5;

/** What a token stands for. @throws Refusal 401, 403; 503 when the API server cannot be asked: that says nothing about the token */
export const authorized = async <T>(
  token: string | undefined,
  access: (token: string) => Promise<Verdict<T>>,
): Promise<T> => {
  if (token === undefined) {
    throw new Refusal({ status: 401, reason: 'Unauthenticated', message: 'a bearer token is required' });
  }
  let verdict: Verdict<T>;
  try {
    verdict = await access(token);
  } catch (error) {
    if (!(error instanceof ReviewUnavailable)) throw error;
    const { reason, message } = error;
    throw new Refusal({ status: 503, reason, message, retryAfterS: REVIEW_AGAIN_S });
  }
  if (verdict.isGranted) return verdict.value;
  throw new Refusal(verdict);
};
