import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

/** Debian's Chromium, for specs of the dashboard. */
export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium',
    // As root in namespaces of the test run there is no other sandbox, and /dev/shm is small.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  });

export interface OpenPage extends AsyncDisposable {
  readonly page: Page;
  /** What the console or the Content Security Policy complained of. */
  readonly complaints: readonly string[];
}

/** A page of a browser context of its own. */
export const openPage = async (browser: Browser, look: BrowserContextOptions = {}): Promise<OpenPage> => {
  const context = await browser.newContext({ ignoreHTTPSErrors: true, ...look });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => void (message.type() === 'error' && complaints.push(message.text())));
  page.on('pageerror', (error) => void complaints.push(error.message));
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
};

/** Signs in to the dashboard, and waits until it shows the view. @param address within the page (`#/nodes`) */
export const signIn = async (page: Page, url: string, token: string, address = ''): Promise<void> => {
  await page.goto(`${url}${address}`);
  await page.getByLabel('Token of the Kubernetes API server').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
};
