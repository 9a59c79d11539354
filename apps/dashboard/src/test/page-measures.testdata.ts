import type { CDPSession, Page } from 'playwright-core';

/** Times and sizes of the page, taken in the page itself. Moments are of the clock that all processes of the machine have in common. */

/** When the text is on the screen: the frame after the one in which the document had it. */
export const momentShown = (page: Page, text: string): Promise<number> =>
  page.evaluate(
    (wanted) =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          if (!document.body.textContent.includes(wanted)) return;
          observer.disconnect();
          requestAnimationFrame(() => setTimeout(() => resolve(performance.timeOrigin + performance.now())));
        };
        const observer = new MutationObserver(look);
        observer.observe(document.body, { subtree: true, childList: true, characterData: true });
        look();
      }),
    text,
  );

export interface FirstPaint {
  /** Since the page was asked for: the browser drew something at all. */
  readonly paintMs: number;
  /** The summary and the problems were drawn. */
  readonly usefulMs: number;
}

/** Loads the page anew, whoever is signed in; nothing comes from a cache of the browser. */
export const firstPaint = async (page: Page, client: CDPSession): Promise<FirstPaint> => {
  await client.send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.reload({ waitUntil: 'commit' });
  const useful = await page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        const look = (): void => {
          if (!document.querySelector('.tiles') || !document.querySelector('.problems > li')) return;
          observer.disconnect();
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
        };
        const observer = new MutationObserver(look);
        observer.observe(document, { subtree: true, childList: true });
        look();
      }),
  );
  const paint = await page.evaluate(
    () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
  );
  return { paintMs: paint, usefulMs: useful };
};

export interface PageMemory {
  readonly heapMiB: number;
  readonly elements: number;
  readonly listeners: number;
}

const MIB = 1 << 20;

/** After a collection of garbage. */
export const memoryOf = async (client: CDPSession): Promise<PageMemory> => {
  await client.send('HeapProfiler.collectGarbage');
  const { usedSize } = await client.send('Runtime.getHeapUsage');
  const { nodes, jsEventListeners } = await client.send('Memory.getDOMCounters');
  return { heapMiB: usedSize / MIB, elements: nodes, listeners: jsEventListeners };
};
