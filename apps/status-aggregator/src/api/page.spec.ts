import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, startTestApi } from './test-api.testdata.ts';

const INDEX = '<!doctype html><title>page</title>';
const SCRIPT = `export const text = '${'x'.repeat(5000)}';`;
const ASSET = '/assets/index-BbHyHM-R.js';

const parent = mkdtempSync(join(tmpdir(), 'status-page-'));
const dashboardDir = join(parent, 'dist');
let api: Awaited<ReturnType<typeof startTestApi>>;

beforeAll(async () => {
  mkdirSync(join(dashboardDir, 'assets'), { recursive: true });
  writeFileSync(join(parent, 'secret.html'), 'secret');
  writeFileSync(join(dashboardDir, 'index.html'), INDEX);
  writeFileSync(join(dashboardDir, ASSET), SCRIPT);
  writeFileSync(join(dashboardDir, 'assets/style-BbHyHMnR.css'), 'a{}');
  writeFileSync(join(dashboardDir, `${ASSET}.map`), '{}');
  api = await startTestApi({ dashboardDir });
});
afterAll(async () => {
  await api[Symbol.asyncDispose]();
  rmSync(parent, { recursive: true });
});

test('the page is there without a token, under a policy that lets it load and ask this server alone', async () => {
  for (const path of ['/', '/?x=1', '/index.html']) {
    const page = await ask(api.port, path);
    expect(page).toMatchObject({ status: 200, headers: { 'content-type': 'text/html; charset=utf-8' } });
    expect(page.body.toString()).toBe(INDEX);
    expect(page.headers['cache-control']).toBe('no-cache');
    expect(page.headers['x-content-type-options']).toBe('nosniff');
    const policy = String(page.headers['content-security-policy']).split('; ');
    expect(policy).toEqual(
      expect.arrayContaining([
        ...["default-src 'self'", "connect-src 'self'", "style-src 'self'"],
        ...["img-src 'self' data:", "frame-ancestors 'none'"],
      ]) as string[],
    );
  }
});

test('assets have their type, are compressed, and may be kept for ever', async () => {
  const plain = await ask(api.port, ASSET);
  expect(plain).toMatchObject({
    status: 200,
    headers: {
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    },
  });
  expect(plain.body.toString()).toBe(SCRIPT);
  const packed = await ask(api.port, ASSET, { headers: { 'accept-encoding': 'gzip, br' } });
  expect(packed.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  expect(packed.body.length).toBeLessThan(200);
  expect(gunzipSync(packed.body).toString()).toBe(SCRIPT);
  const style = await ask(api.port, '/assets/style-BbHyHMnR.css', { headers: { 'accept-encoding': 'gzip' } });
  expect(style.headers['content-type']).toBe('text/css; charset=utf-8');
  expect(style.headers['content-encoding'], 'smaller than compressed').toBeUndefined();
});

test('what has not changed is not sent again', async () => {
  for (const path of ['/', ASSET]) {
    const { headers } = await ask(api.port, path);
    const again = await ask(api.port, path, { headers: { 'if-none-match': String(headers['etag']) } });
    expect(again).toMatchObject({ status: 304, body: Buffer.alloc(0) });
    expect(await ask(api.port, path, { headers: { 'if-none-match': '"other"' } })).toMatchObject({ status: 200 });
  }
});

test('HEAD says what GET would send', async () => {
  expect(await ask(api.port, '/', { method: 'HEAD' })).toMatchObject({
    status: 200,
    headers: { 'content-length': String(INDEX.length) },
    body: Buffer.alloc(0),
  });
});

test.each([
  '/assets/none-BbHyHMnR.js',
  `${ASSET}.map`,
  '/assets',
  '/assets/',
  '/../secret.html',
  '/%2e%2e/secret.html',
  '/assets/..%2f..%2fsecret.html',
  '/assets/..\\..\\secret.html',
  '//etc/passwd',
  '/nodes/n1',
  '/__proto__',
])('%s is not there', async (path) => {
  expect(await ask(api.port, path)).toMatchObject({ status: 404, json: { reason: 'NotFound' } });
});

test('nothing but GET and HEAD is answered by the page, and the API asks for a token as ever', async () => {
  expect((await ask(api.port, '/', { method: 'POST' })).status).toBe(404);
  expect((await ask(api.port, '/v1alpha1/view')).status).toBe(401);
  expect((await ask(api.port, '/openapi.json')).status).toBe(200);
});

test.each([undefined, '/nonexistent/dist'])('without the folder (%s) / says so, and the API works', async (folder) => {
  await using bare = await startTestApi({ dashboardDir: folder });
  expect(await ask(bare.port, '/')).toMatchObject({
    status: 404,
    json: { reason: 'NotFound', message: expect.stringContaining('the dashboard is not installed') as string },
  });
  bare.view.push({ a: 1 });
  expect((await ask(bare.port, '/v1alpha1/view', { token: 'viewer.anna' })).status).toBe(200);
});
