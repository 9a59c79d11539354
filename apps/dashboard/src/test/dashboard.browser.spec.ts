import { AxeBuilder } from '@axe-core/playwright';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type ReplayedCluster, replayCluster } from './replayed-cluster.testdata.ts';
import { reportsOf, withoutPeer } from './reports.testdata.ts';

/** The page in Debian's Chromium, of a real aggregator behind a real API server. */

let cluster: ReplayedCluster;
let browser: Browser;
const contexts: BrowserContext[] = [];

beforeAll(async () => {
  cluster = await replayCluster();
  browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // As root in namespaces of the test run there is no other sandbox, and /dev/shm is small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
});
afterEach(async () => {
  for (const context of contexts.splice(0)) await context.close();
});
afterAll(async () => {
  await browser?.close();
  await cluster?.[Symbol.asyncDispose]();
});

type Look = Parameters<Browser['newContext']>[0];

/** A page of its own, with whatever the console or the Content Security Policy complained of. */
const openPage = async (look: Look = {}): Promise<{ readonly page: Page; readonly complaints: string[] }> => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...look });
  contexts.push(context);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
  page.on('pageerror', (error) => void complaints.push(error.message));
  return { page, complaints };
};

const signIn = async (page: Page, address = ''): Promise<void> => {
  await page.goto(`${cluster.url}${address}`);
  await page.getByLabel('Token of the Kubernetes API server').fill(cluster.viewerToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
};

const VIEWS = [
  ['', 'Overview'],
  ['#/sites', 'Sites'],
  ['#/sites/s1', 'Site s1'],
  ['#/matrix?show=rtt', 'Reach by site'],
  ['#/pools', 'Gateways'],
  ['#/nodes', 'Nodes'],
  ['#/nodes/s1-w1', 'Node s1-w1'],
  ['#/topology', 'Topology'],
  ['#/egress', 'Egress addresses'],
] as const;
const titleOf = (page: Page) => page.getByRole('heading', { level: 1 });

describe('every view', () => {
  test.each<[look: string, Look]>([
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['360 px wide', { viewport: { width: 360, height: 740 } }],
  ])('has no finding of axe, and no complaint of the browser: %s', async (_, look) => {
    const { page, complaints } = await openPage(look);
    await page.goto(cluster.url);
    expect((await new AxeBuilder({ page }).analyze()).violations).toEqual([]);
    await signIn(page);
    for (const [address, title] of VIEWS) {
      await page.goto(`${cluster.url}${address}`);
      await titleOf(page).filter({ hasText: title }).waitFor();
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id, nodes }) => `${title}: ${id}: ${nodes[0]?.html}`)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth'), title).toBe(true);
    }
    expect(complaints).toEqual([]);
  });

  test('is reached by the keyboard alone', async () => {
    const { page } = await openPage();
    await signIn(page);
    for (const title of ['Sites', 'Reach by site', 'Gateways', 'Nodes', 'Topology', 'Egress addresses', 'Overview']) {
      const link = { 'Reach by site': 'Reach', 'Egress addresses': 'Egress' }[title] ?? title;
      for (let steps = 0; ; steps++) {
        await page.keyboard.press('Tab');
        const name = await page.evaluate(
          'document.activeElement?.closest("nav") ? document.activeElement.innerText : ""',
        );
        if (name === link) break;
        expect(steps, `focus on ${link}`).toBeLessThan(60);
      }
      await page.keyboard.press('Enter');
      await titleOf(page).filter({ hasText: title }).waitFor();
    }
  });

  test('is restored by its address, filters and order included', async () => {
    const { page } = await openPage();
    await signIn(page, '#/nodes');
    await page.getByLabel('Search').fill('s2-');
    await page.getByRole('columnheader', { name: 'Peers' }).getByRole('button').click();
    await page.waitForURL(/sort=/);
    const rows = page.locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(4);
    const { page: other } = await openPage();
    await signIn(other, new URL(page.url()).hash);
    await expect.poll(() => other.locator('tbody tr').count()).toBe(4);
    expect(await other.getByLabel('Search').inputValue()).toBe('s2-');
    const namesOn = (one: Page) => one.locator('tbody tr a').allInnerTexts();
    expect(await namesOn(other)).toEqual(await namesOn(page));
  });
});

test('what breaks is on the page without a reload, with what stands in, and goes again', async () => {
  const { page } = await openPage();
  await signIn(page);
  await page.getByText('8 of 8').waitFor();
  for (const [node, report] of reportsOf())
    if (node !== 's1-g1') await cluster.report(node, withoutPeer(report, 's1-g1'));
  await page.getByText('traffic goes by s1-g2 instead').waitFor({ timeout: 8000 });
  await page.goto(`${cluster.url}#/nodes/s1-w1`);
  await page.getByRole('row', { name: /s1-g1/ }).first().getByText('Unhealthy').first().waitFor();
  await page.goto(cluster.url);
  for (const [node, report] of reportsOf()) await cluster.report(node, report);
  await page.getByRole('heading', { name: 'Problems (0)' }).waitFor();
  expect(await page.getByText('Ended lately (').innerText()).not.toContain('(0)');
});

test('a token that may not read the status is refused, and forgotten', async () => {
  const { page } = await openPage();
  await page.goto(cluster.url);
  await page.getByLabel('Token of the Kubernetes API server').fill('not-a-token');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('You were signed out.').waitFor();
  expect(await page.evaluate('JSON.stringify([sessionStorage, localStorage])')).not.toContain('not-a-token');
});
