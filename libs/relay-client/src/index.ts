export { type ClientEvents, type ClientOptions, type ClientSettings, type ClientState, RelayClient } from './client.ts';
export { type Clock, systemClock, type Timer } from './clock.ts';
export { type Dial, dialWith, type TlsSettings } from './dial.ts';
export { DEFAULT_PORT, type Endpoint, EndpointSyntaxError, formatEndpoint, parseEndpoint } from './endpoint.ts';
export { type Exchange, exchangeWith } from './platform-crypto.ts';
export type { EndReason, Identity, SessionEnd } from './session.ts';
export { newTallies, type Tallies } from './tallies.ts';
