/** Whether pods are devices of a tailnet, which a laptop outside of the sites is in as well. */

export interface TailnetOptions {
  /** A control server and a laptop on the WAN; the test pods are devices. */
  readonly tailnet: boolean;
}

const defaults: TailnetOptions = { tailnet: false };

export const tailnetOptions = { defaults, choices: {}, check: (): void => undefined } as const;
