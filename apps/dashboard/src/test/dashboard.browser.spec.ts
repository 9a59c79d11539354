import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type Look,
  openBrowser,
  type OpenPage,
  signIn as signInAt,
  type TestBrowser,
} from '@unbounded/testing/browser';
import { MOST_NAMES } from '../app/api.ts';
import { type ReplayedCluster, replayCluster } from './replayed-cluster.testdata.ts';
import { reportsOf, withoutPeer } from './reports.testdata.ts';

/** The page in Debian's Chromium, of a real aggregator behind a real API server. */

let cluster: ReplayedCluster;
let browser: TestBrowser;

beforeAll(async () => {
  cluster = await replayCluster();
  browser = await openBrowser();
});
afterEach(() => browser.closePages());
afterAll(async () => {
  await browser?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

const openPage = (look?: Look): Promise<OpenPage> => browser.openPage(look);
const signIn = (page: Page, address?: string): Promise<void> => signInAt(page, cluster, address);

const VIEWS = [
  ['', 'Overview'],
  ['#/sites', 'Sites'],
  ['#/sites/s1', 'Site s1'],
  ['#/matrix?show=rtt', 'Reach by site'],
  ['#/matrix/s1/s2?show=path', 'Reach by node: s1 to s2'],
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

describe('from the matrix of sites to that of nodes', () => {
  const focused = (page: Page): Promise<string> => page.evaluate('document.activeElement.ariaLabel ?? ""');

  test('Enter leads there, and arrows from node to node; the address restores the cell', async () => {
    const { page } = await openPage();
    await signIn(page, '#/matrix?show=rtt');
    await page.getByRole('gridcell', { name: /^s1 to s1:/ }).focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await titleOf(page).filter({ hasText: 'Reach by node: s1 to s2' }).waitFor();
    await page.getByRole('gridcell', { name: /^s1-w1 to s1-g1: Healthy; .*Round trip: 0.53 ms/ }).waitFor();
    await page.getByRole('gridcell', { name: /^s1-g1 to s1-g1/ }).focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    const label = /^s1-g2 to s2-g2: Healthy; .*Loss: 3.1 %; .*Path: Direct/;
    await expect.poll(() => focused(page)).toMatch(label);
    const { page: other } = await openPage();
    await signIn(other, new URL(page.url()).hash);
    const chosen = other.locator('[role=gridcell][aria-selected=true]');
    await expect.poll(() => chosen.getAttribute('aria-label')).toMatch(label);
    expect(await other.getByLabel('Show').inputValue()).toBe('rtt');
  });

  test('it is reached from the page of a site too', async () => {
    const { page } = await openPage();
    await signIn(page, '#/sites/s1');
    await page.getByRole('link', { name: 'from it, s2, by node' }).click();
    await titleOf(page).filter({ hasText: 'Reach by node: s2 to s1' }).waitFor();
    await expect.poll(() => page.locator('output').innerText()).toBe('4 nodes');
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
  await page.goto(`${cluster.url}#/matrix/s1/s2`);
  await page.getByRole('gridcell', { name: /^s1-w1 to s1-g1: Unhealthy; .*do not go there now/ }).waitFor();
  await page.goto(cluster.url);
  for (const [node, report] of reportsOf()) await cluster.report(node, report);
  await page.getByRole('heading', { name: 'Problems (0)' }).waitFor();
  expect(await page.getByText('Ended lately (').innerText()).not.toContain('(0)');
});

test('the server takes as many names at once as the page asks for', async () => {
  const { page } = await openPage();
  const headers = { Authorization: `Bearer ${cluster.viewerToken}` };
  const others = Array.from({ length: MOST_NAMES - 1 }, (_, index) => `none-${index}`);
  const names = encodeURIComponent(['s1-w1', ...others].join(','));
  const answer = await page.request.get(`${cluster.url}v1alpha1/nodes?names=${names}`, { headers });
  expect(answer.status()).toBe(200);
  expect(await answer.json()).toMatchObject({ nodes: { 's1-w1': { report: {} } }, left: [] });
});

test('a token that may not read the status is refused, and forgotten', async () => {
  const { page } = await openPage();
  await page.goto(cluster.url);
  await page.getByLabel('Token of the Kubernetes API server').fill('not-a-token');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('You were signed out.').waitFor();
  expect(await page.evaluate('JSON.stringify([sessionStorage, localStorage])')).not.toContain('not-a-token');
});
