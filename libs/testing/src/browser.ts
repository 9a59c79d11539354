import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';

/** Debian's Chromium for specs of the dashboard, with a page for each test. */

export type Look = Parameters<Browser['newContext']>[0];

export interface OpenPage {
  readonly page: Page;
  /** What the console or the Content Security Policy complained of. */
  readonly complaints: readonly string[];
}

export interface TestBrowser extends AsyncDisposable {
  openPage(look?: Look): Promise<OpenPage>;
  closePages(): Promise<void>;
}

export const openBrowser = async (): Promise<TestBrowser> => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    // As root in namespaces of the test run there is no other sandbox, and /dev/shm is small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });
  const contexts: BrowserContext[] = [];
  return {
    async openPage(look = {}) {
      const context = await browser.newContext({ ignoreHTTPSErrors: true, ...look });
      contexts.push(context);
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
      page.on('pageerror', (error) => void complaints.push(error.message));
      return { page, complaints };
    },
    async closePages() {
      for (const context of contexts.splice(0)) await context.close();
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
};

interface Served {
  /** Of the dashboard. */
  readonly url: string;
  /** May read the status. */
  readonly viewerToken: string;
}

/** Signs in to the dashboard, and waits until it shows the view. @param address within the page (`#/nodes`) */
export const signIn = async (page: Page, { url, viewerToken }: Served, address = ''): Promise<void> => {
  await page.goto(`${url}${address}`);
  await page.getByLabel('Token of the Kubernetes API server').fill(viewerToken);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
};
