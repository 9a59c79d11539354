import { expect, test } from 'vitest';

import { retryAfterMs, TailnetApiError, withoutSecrets } from './api-error.ts';
import { createTailnetApi, type TailnetApi } from './tailnet-api.ts';

const [SECRET, TOKEN] = ['planted-client-secret', 'planted-token'];
const client = { clientID: 'id', clientSecret: SECRET };
const signal = new AbortController().signal;
const WISH = { tags: ['tag:a'], expirySeconds: 300, description: 'pod shop web-0' };

const json = (body: unknown, status = 200, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers });
const token = (expiresIn = 3600, text = TOKEN) => json({ access_token: text, expires_in: expiresIn });

interface Asked {
  readonly path: string;
  readonly method: string;
  readonly authorization: string | null;
  readonly body: string;
}

/** A server that answers from a list for each path, the last answer again and again; only one that never does is given up. */
const world = (answers: Record<string, (Response | (() => Response | Promise<Response>))[]>, timeoutMs = 30_000) => {
  const asked: Asked[] = [];
  let [nowMs, elapsedMs] = [Date.parse('2026-01-01T00:00:00Z'), 0];
  let [underWay, most] = [0, 0];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const url = input as URL;
    const body = init?.body;
    const text = typeof body === 'string' ? body : body instanceof URLSearchParams ? body.toString() : '';
    const authorization = new Headers(init?.headers).get('authorization');
    asked.push({ path: url.pathname, method: init?.method ?? 'GET', authorization, body: text });
    most = Math.max(most, ++underWay);
    try {
      const list = answers[url.pathname] ?? [];
      const answer = list.length > 1 ? list.shift()! : list[0]!;
      if (typeof answer !== 'function') return answer.clone();
      // As the real one does, also for a server that never answers.
      const ended = new Promise<never>((_, reject) =>
        init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason)),
      );
      return await Promise.race([answer(), ended]);
    } finally {
      underWay--;
    }
  };
  const api = createTailnetApi({
    ...{ url: 'https://api.example.com', fetch, timeoutMs, client: async () => client },
    ...{ now: () => nowMs, elapsed: () => elapsedMs },
  });
  return {
    ...{ api, asked },
    paths: () => asked.map(({ path }) => path),
    pass: (ms: number) => void ((nowMs += ms), (elapsedMs += ms)),
    most: () => most,
  };
};
const [TOKENS, KEYS, DEVICES, DEVICE] = [
  '/api/v2/oauth/token',
  '/api/v2/tailnet/-/keys',
  '/api/v2/tailnet/-/devices',
  '/api/v2/device/n1',
];
const errorOf = async (call: Promise<unknown>): Promise<TailnetApiError> => {
  const error = await call.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(TailnetApiError);
  const text = `${String(error)} ${JSON.stringify(error)} ${(error as Error).stack}`;
  for (const secret of [SECRET, TOKEN]) expect(text).not.toContain(secret);
  expect((error as Error).cause).toBeUndefined();
  return error as TailnetApiError;
};

test('a key is for one device, which needs no approval and stays', async () => {
  const { api, asked } = world({ [TOKENS]: [token()], [KEYS]: [json({ id: 'k1', key: 'tskey-auth-x' })] });
  expect(await api.createKey(WISH, signal)).toEqual({ id: 'k1', key: 'tskey-auth-x' });
  expect(new URLSearchParams(asked[0]!.body).get('client_secret')).toBe(SECRET);
  expect(asked[1]).toMatchObject({ method: 'POST', authorization: `Bearer ${TOKEN}` });
  expect(JSON.parse(asked[1]!.body)).toEqual({
    capabilities: { devices: { create: { reusable: false, ephemeral: false, preauthorized: true, tags: ['tag:a'] } } },
    ...{ expirySeconds: 300, description: 'pod shop web-0' },
  });
});

test('devices are as the API has them; what is not known of one is empty', async () => {
  const full = { nodeId: 'n1', id: '7', hostname: 'web', tags: ['tag:a'], created: '2026-01-01T00:00:00Z' };
  const devices = [
    { ...full, expires: '0001-01-01T00:00:00Z', keyExpiryDisabled: true },
    { ...full, nodeId: 'n2', expires: '2026-07-01T00:00:00Z' },
    { nodeId: 'n3', tags: null },
  ];
  const { api } = world({ [TOKENS]: [token()], [DEVICES]: [json({ devices })], [DEVICE]: [json(devices[0])] });
  const first = { id: 'n1', hostName: 'web', tags: ['tag:a'], created: '2026-01-01T00:00:00Z' };
  expect(await api.devices(signal)).toEqual([
    first,
    { ...first, id: 'n2', expires: '2026-07-01T00:00:00Z' },
    { id: 'n3', hostName: '', tags: [], created: '' },
  ]);
  expect(await api.device('n1', signal)).toEqual(first);
});

test('what is gone is no error', async () => {
  const gone = json({ message: 'no such device' }, 404);
  const { api } = world({ [TOKENS]: [token()], [DEVICE]: [gone], [`${KEYS}/k1`]: [gone] });
  await api.deleteDevice('n1', signal);
  await api.deleteKey('k1', signal);
  expect(await api.device('n1', signal)).toBeUndefined();
});

test('one token serves many, and is renewed five minutes before its end', async () => {
  const { api, paths, pass } = world({ [TOKENS]: [token()], [DEVICE]: [json({}, 404)] });
  const tokens = () => paths().filter((path) => path === TOKENS).length;
  await Promise.all(Array.from({ length: 20 }, () => api.device('n1', signal)));
  expect(tokens()).toBe(1);
  pass(3_299_000);
  await api.device('n1', signal);
  expect(tokens()).toBe(1);
  pass(1_001);
  await api.device('n1', signal);
  expect(tokens()).toBe(2);
});

test('a token that is refused is replaced, once', async () => {
  const refused = () => json({ message: `API token ${TOKEN} invalid` }, 401);
  const { api, asked } = world({ [TOKENS]: [token(), token(3600, 'second')], [DEVICE]: [refused, json({}, 404)] });
  expect(await api.device('n1', signal)).toBeUndefined();
  expect(asked.map(({ authorization }) => authorization)).toEqual([null, `Bearer ${TOKEN}`, null, 'Bearer second']);
  const always = world({ [TOKENS]: [token()], [DEVICE]: [refused] });
  expect(await errorOf(always.api.device('n1', signal))).toMatchObject({ failure: 'CredentialsRefused', status: 401 });
  expect(always.paths()).toEqual([TOKENS, DEVICE, TOKENS, DEVICE]);
});

test.each<[string, () => Response | Promise<Response>, object]>([
  [
    '503',
    () => json({ message: 'away' }, 503),
    { failure: 'ControlServerUnreachable', message: expect.stringContaining('503: away') },
  ],
  [
    '429 and a time',
    () => json({}, 429, { 'retry-after': '7' }),
    { failure: 'ControlServerUnreachable', retryAfterMs: 7000 },
  ],
  ['403', () => json({ message: 'no scope' }, 403), { failure: 'CredentialsRefused' }],
  ['400 about tags', () => json({ message: 'requested tags [tag:a] are invalid' }, 400), { failure: 'TagsRefused' }],
  ['another 400', () => json({ message: 'description too long' }, 400), { failure: 'RequestRefused' }],
  ['404', () => json({}, 404), { failure: 'RequestRefused', message: expect.stringContaining('apiURL') }],
  [
    'a redirect',
    () => new Response(null, { status: 307, headers: { location: 'https://evil.example/' } }),
    { failure: 'ControlServerUnreachable', message: expect.stringContaining('a redirect') },
  ],
  ['no JSON', () => new Response('<html>'), { failure: 'ControlServerUnreachable' }],
  ['no key', () => json({ id: 'k1' }), { failure: 'ControlServerUnreachable' }],
  ['too long an answer', () => new Response('x'.repeat(70_000)), { failure: 'ControlServerUnreachable' }],
  [
    'no connection',
    () => Promise.reject(new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED', secret: SECRET } })),
    { failure: 'ControlServerUnreachable', message: expect.stringContaining('ECONNREFUSED') },
  ],
])('%s is told as what it is', async (_, answer, error) => {
  const { api } = world({ [TOKENS]: [token()], [KEYS]: [answer] });
  expect(await errorOf(api.createKey(WISH, signal))).toMatchObject(error);
});

test('nothing in time is told as what it is', async () => {
  const never = () => new Promise<Response>(() => {});
  const { api, asked } = world({ [TOKENS]: [never] }, 50);
  const error = await errorOf(api.createKey(WISH, signal));
  expect(error).toMatchObject({
    failure: 'ControlServerUnreachable',
    message: expect.stringContaining('in time') as string,
  });
  expect(asked).toHaveLength(1);
});

test('credentials that are refused are told as such, without them', async () => {
  const said = () => json({ message: `client_secret=${SECRET} is wrong` }, 401);
  const { api } = world({ [TOKENS]: [said] });
  const { message, failure } = await errorOf(api.devices(signal));
  expect([failure, message]).toEqual([
    'CredentialsRefused',
    'POST /api/v2/oauth/token: 401: client_secret=[redacted] is wrong',
  ]);
});

test('who is told to wait asks nothing until then, for nobody', async () => {
  const { api, paths, pass } = world({
    [TOKENS]: [token()],
    [DEVICE]: [json({}, 429, { 'retry-after': '30' }), json({}, 404)],
  });
  await errorOf(api.device('n1', signal));
  const before = paths().length;
  expect((await errorOf(api.device('n2', signal))).retryAfterMs).toBe(30_000);
  expect(paths()).toHaveLength(before);
  pass(30_000);
  expect(await api.device('n1', signal)).toBeUndefined();
});

test('at most five requests are under way', async () => {
  const slow = () => new Promise<Response>((resolve) => setImmediate(() => resolve(json({}, 404))));
  const { api, most } = world({ [TOKENS]: [token()], [DEVICE]: [slow] });
  const calls: ReturnType<TailnetApi['device']>[] = Array.from({ length: 20 }, () => api.device('n1', signal));
  await Promise.all(calls);
  expect(most()).toBe(5);
});

test('who gives up gets no answer, and others get theirs', async () => {
  const { api } = world({ [TOKENS]: [token()], [DEVICE]: [json({}, 404)] });
  const controller = new AbortController();
  controller.abort();
  await expect(api.device('n1', controller.signal)).rejects.toThrow('aborted');
  expect(await api.device('n1', signal)).toBeUndefined();
});

test.each<[string | null, number | undefined]>([
  [null, undefined],
  ['', undefined],
  ['soon', undefined],
  ['7', 7000],
  ['86400', 600_000],
  ['Thu, 01 Jan 2026 00:00:09 GMT', 9000],
  ['Thu, 01 Jan 2026 08:00:00 GMT', 600_000],
  ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
])('Retry-After %j is %s ms', (header, ms) => {
  expect(retryAfterMs(header, Date.parse('2026-01-01T00:00:00Z'))).toBe(ms);
});

test('a secret that is no secret hides nothing', () => {
  expect(withoutSecrets('status 401: no', ['', '401'])).toBe('status 401: no');
});
