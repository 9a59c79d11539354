import type { RefusalReason } from '../api/refusal.ts';

/** Whether somebody may, and as whom. */
export type Verdict<T> =
  | { readonly isGranted: true; readonly value: T; readonly expiresAt?: Date | undefined }
  | { readonly isGranted: false; readonly status: 401 | 403; readonly reason: RefusalReason; readonly message: string };

/** The API server does not answer, or too many ask it at once: this says nothing about who asks. */
export class ReviewUnavailable extends Error {
  override readonly name = 'ReviewUnavailable';
  readonly reason: RefusalReason;

  constructor(reason: 'ReviewUnavailable' | 'TooManyReviews', options?: ErrorOptions) {
    super(
      reason === 'TooManyReviews'
        ? 'too many tokens are being reviewed at once'
        : 'the API server does not review tokens at the moment',
      options,
    );
    this.reason = reason;
  }
}
