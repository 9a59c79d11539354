import type { Verdict } from './verdict.ts';

export type ReviewKind = 'agent-token' | 'viewer-token' | 'viewer-access';
export type CountReview = (kind: ReviewKind, result: 'granted' | 'refused' | 'unavailable') => void;

/** Counts what the API server answers. */
export const counted =
  <A, T>(count: CountReview, kind: ReviewKind, review: (about: A) => Promise<Verdict<T>>) =>
  async (about: A): Promise<Verdict<T>> => {
    try {
      const verdict = await review(about);
      count(kind, verdict.isGranted ? 'granted' : 'refused');
      return verdict;
    } catch (error) {
      count(kind, 'unavailable');
      throw error;
    }
  };
