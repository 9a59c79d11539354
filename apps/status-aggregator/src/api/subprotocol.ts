/** The only subprotocol that is ever selected. */
export const STREAM_PROTOCOL = 'v1.status.unbounded';
/** How browsers, which cannot set Authorization, send a bearer token: as the Kubernetes API server takes it. */
const TOKEN_PREFIX = 'base64url.bearer.authorization.k8s.io.';

/** Names of a Sec-WebSocket-Protocol header (RFC 6455 11.3.4). */
export const offeredProtocols = (header: string | undefined): readonly string[] =>
  (header ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** The token among offered subprotocols. Undefined: there is none, or more than one, or it is not base64url of UTF-8. */
export const tokenOf = (offered: readonly string[]): string | undefined => {
  const [encoded, ...more] = offered.flatMap((name) =>
    name.startsWith(TOKEN_PREFIX) ? [name.slice(TOKEN_PREFIX.length)] : [],
  );
  if (encoded === undefined || more.length > 0 || !/^[\w-]+$/.test(encoded)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64url'));
  } catch {
    return undefined;
  }
};
