import type { AddressInfo } from 'node:net';
import { openBrowser, signIn } from '@unbounded/testing/browser';
import type { Page } from 'playwright-core';
import type { LabLayout } from '../layout/layout.ts';
import { openPassage, serveOnLoopback } from './passage.ts';
import { aggregatorEndpoint, viewerToken } from './viewer.ts';

/** The lab's dashboard, signed in to in Chromium. */
export interface OpenDashboard extends AsyncDisposable {
  readonly page: Page;
  /** Without what the browser tells of a server that is away. */
  complaints(): string[];
}

const OF_ABSENCE = /WebSocket connection|Failed to load resource/;

export const openDashboard = async (layout: LabLayout): Promise<OpenDashboard> => {
  await using opening = new AsyncDisposableStack();
  const { socket } = opening.use(await openPassage(layout, 'page', await aggregatorEndpoint(layout)));
  const server = await serveOnLoopback(socket, 0);
  opening.defer(() => void server.close());
  const browser = opening.use(await openBrowser());
  const { page, complaints } = await browser.openPage();
  const { port } = server.address() as AddressInfo;
  await signIn(page, { url: `https://localhost:${port}/`, viewerToken: await viewerToken(layout) });
  const opened = opening.move();
  return {
    page,
    complaints: () => complaints.filter((text) => !OF_ABSENCE.test(text)),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
};

/** Leads to another view without a reload. @param address `#/nodes` */
export const showView = async (page: Page, address: string, title: string): Promise<void> => {
  await page.evaluate(`location.hash = ${JSON.stringify(address)}`);
  await page.getByRole('heading', { level: 1 }).filter({ hasText: title }).waitFor();
};

/** Rows of the table of a view as texts by column title, by the text of their first cell. */
export const tableOn = async (page: Page): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> => {
  const [headers = [], ...rows] = await page.evaluate<string[][]>(
    '[...document.querySelectorAll("table tr")].map((row) => [...row.children].map((cell) => cell.innerText.trim()))',
  );
  // The header by which rows are sorted has an arrow.
  const titles = headers.map((header) => header.replace(/\W+$/, ''));
  return new Map(rows.map((cells) => [cells[0]!, Object.fromEntries(cells.map((cell, at) => [titles[at]!, cell]))]));
};
