import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkPosition } from './api.ts';

/** What the page concludes from the view that the server answers with, when the stream is silent. */

beforeEach(() => vi.stubGlobal('document', { baseURI: 'https://status.example.com/' }));
afterEach(() => void vi.unstubAllGlobals());

const tagOf = (...lines: readonly string[]): string => `W/"${encodeURIComponent(lines.join('\n'))}"`;

const check = async (status: number, tag: string | undefined, position: string | undefined) => {
  const headers: Record<string, string> = tag === undefined ? {} : { ETag: tag };
  const answer = new Response(status === 304 ? null : 'a view', { status, headers });
  const asked = vi.fn((_url: URL, _init: { readonly headers: Readonly<Record<string, string>> }) =>
    Promise.resolve(answer),
  );
  vi.stubGlobal('fetch', asked);
  const verdict = await checkPosition('token')(position);
  expect(asked.mock.calls[0]![1].headers['If-None-Match']).toBe(tagOf(position ?? ''));
  return verdict;
};

test.each<[what: string, status: number, tag: string | undefined, verdict: string]>([
  ['the view is the same', 304, tagOf('a-7'), 'current'],
  ['the view is the same, and something hinders the server', 200, tagOf('a-7', 'Redis is away'), 'current'],
  ['the view went on', 200, tagOf('a-8'), 'moved'],
  ['the view went on, and something hinders the server', 200, tagOf('a-8', 'Redis is away'), 'moved'],
  ['the view has a tag of another kind', 200, '"a-7"', 'moved'],
  ['the view has a tag that cannot be read', 200, 'W/"%"', 'moved'],
  ['the view has no tag', 200, undefined, 'moved'],
  ['the token counts no more', 401, undefined, 'unauthenticated'],
  ['the user may not see it', 403, undefined, 'forbidden'],
  ['the server cannot say', 503, undefined, 'failed'],
])('%s', async (_, status, tag, verdict) => {
  expect(await check(status, tag, 'a-7')).toBe(verdict);
});

test('before there is a view, a token that does not count is seen as one', async () => {
  expect(await check(401, undefined, undefined)).toBe('unauthenticated');
  expect(await check(200, tagOf('a-1'), undefined)).toBe('moved');
});
