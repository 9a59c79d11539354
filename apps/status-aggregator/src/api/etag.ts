/** Weak (RFC 9110 8.8.1): compressed and plain answers share it. A position may hold any character. */
export const etagOf = (position: string): string => `W/"${encodeURIComponent(position)}"`;

/** If-None-Match (RFC 9110 13.1.2), by weak comparison. */
export const isUnchanged = (ifNoneMatch: string | undefined, etag: string): boolean =>
  (ifNoneMatch ?? '')
    .split(',')
    .map((text) => text.trim())
    .some((text) => text === '*' || text.replace(/^W\//, '') === etag.replace(/^W\//, ''));
