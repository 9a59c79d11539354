/** Why the server closed the stream (RFC 6455 7.4; 44xx are of the application). */

interface CloseMeaning {
  readonly text: string;
  /** The token is of no use any more. */
  readonly isEnd?: boolean;
  /** Not at once. */
  readonly isLater?: boolean;
}

const withReason = (text: string, reason: string): string => (reason === '' ? `${text}.` : `${text}: ${reason}.`);

export const closeMeaning = (code: number, reason: string): CloseMeaning => {
  switch (code) {
    case 4401:
      return { isEnd: true, text: withReason('The server does not accept the token any more', reason) };
    case 4403:
      return { isEnd: true, text: withReason('The token may not read the status of the network any more', reason) };
    case 1001:
      return { text: 'The server is shutting down or restarting.' };
    case 1013:
      return { isLater: true, text: withReason('The server asks to try again later', reason) };
    default:
      return { text: withReason(`The connection was lost (code ${code})`, reason) };
  }
};
