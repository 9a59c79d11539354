/** A browser cannot set Authorization on a WebSocket: the token goes as a subprotocol, as the Kubernetes API server takes it. */

const STREAM_PROTOCOL = 'v1.status.unbounded';
const TOKEN_PREFIX = 'base64url.bearer.authorization.k8s.io.';

const base64url = (text: string): string =>
  btoa(String.fromCodePoint(...new TextEncoder().encode(text)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '');

export const subprotocolsOf = (token: string): string[] => [STREAM_PROTOCOL, `${TOKEN_PREFIX}${base64url(token)}`];

/** What a bearer token may consist of (RFC 6750); anything else is a slip of the clipboard. */
export const isToken = (text: string): boolean => text.length <= 12_288 && /^[\w.~+/-]+=*$/.test(text);
