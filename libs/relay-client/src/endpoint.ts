import { isIP, isIPv6 } from 'node:net';

const DEFAULT_PORT = 3478;

/** Where a relay listens. */
export interface Endpoint {
  /** An address or a DNS name. */
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  /** The name that a TLS certificate must have, where `host` is an address that was found under a name. */
  readonly serverName?: string;
}

export class EndpointSyntaxError extends Error {
  override readonly name = 'EndpointSyntaxError';
}

const FORM = /^(?:(?<scheme>[a-z]+):\/\/)?(?:\[(?<bracketed>[^\]]*)\]|(?<plain>[^:/[\]]*))(?::(?<port>[0-9]{1,6}))?$/;
const LABEL = /^(?!-)[A-Za-z0-9_-]{1,63}(?<!-)$/;
const MAX_NAME = 253;
const SCHEMES: Readonly<Record<string, boolean>> = { relay: false, tcp: false, relays: true };

const isName = (host: string): boolean =>
  host.length <= MAX_NAME &&
  host
    .replace(/\.$/, '')
    .split('.')
    .every((label) => LABEL.test(label)) &&
  !/^[0-9.]+$/.test(host);

/**
 * `relay.example.com:3478`, `192.0.2.1`, `[2001:db8::1]:3478`, each also with `relay://` (the same) or `relays://` (TLS) in
 * front; the port is 3478 when not said. @throws EndpointSyntaxError
 */
export const parseEndpoint = (text: string): Endpoint => {
  const wrong = (what: string): EndpointSyntaxError =>
    new EndpointSyntaxError(
      `relay endpoint "${text}" ${what}: must be like relay.example.com:3478, 192.0.2.1:3478 or relays://[2001:db8::1]:3478`,
    );
  const { scheme = 'relay', bracketed, plain, port } = FORM.exec(text)?.groups ?? {};
  if (bracketed === undefined && plain === undefined)
    throw wrong(isIPv6(text) ? 'has an IPv6 address without brackets' : 'is no HOST:PORT');
  const isTls = SCHEMES[scheme];
  if (isTls === undefined) throw wrong(`begins with "${scheme}://"`);
  const number = Number(port ?? DEFAULT_PORT);
  if (number < 1 || number > 65_535) throw wrong(`has port ${number}`);
  if (bracketed !== undefined && !isIPv6(bracketed)) throw wrong(`has "${bracketed}" in brackets`);
  const host = bracketed ?? plain!;
  if (isIP(host) === 0 && !isName(host)) throw wrong(`has "${host}" for a host`);
  return { host, port: number, isTls };
};

/** The text that `parseEndpoint` takes, always with the port. */
export const formatEndpoint = ({ host, port, isTls }: Endpoint): string =>
  `${isTls ? 'relays://' : ''}${isIPv6(host) ? `[${host}]` : host}:${port}`;
