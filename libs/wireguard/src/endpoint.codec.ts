import { formatAddress, parseAddress } from '@unbounded/ip';

import { type Endpoint, WireGuardError } from './device.ts';

export interface EndpointParts {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

const FORM = /^(?:\[([0-9a-fA-F:.]+)(?:%[^\]]+)?\]|([0-9.]+)):(\d{1,5})$/;

/** @throws WireGuardError `invalid` */
export const parseEndpoint = (text: Endpoint): EndpointParts => {
  const [, v6, v4, port = ''] = FORM.exec(text) ?? [];
  const address = tryAddress(v6 ?? v4);
  if (
    address === undefined ||
    address.includes(':') !== (v6 !== undefined) ||
    Number(port) > 65_535 ||
    Number(port) === 0
  ) {
    throw new WireGuardError(
      'invalid',
      `endpoint "${text.slice(0, 60)}" must be like 192.0.2.1:51820 or [2001:db8::1]:51820`,
    );
  }
  return { address, port: Number(port) };
};

const tryAddress = (text: string | undefined): string | undefined => {
  try {
    return text === undefined ? undefined : formatAddress(parseAddress(text));
  } catch {
    return undefined;
  }
};

export const formatEndpoint = ({ address, port }: EndpointParts): Endpoint =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
