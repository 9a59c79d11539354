import { expectCases } from './expectations.ts';

/** Tunnels of one family, over an underlay of the same and of the other. */

expectCases(['IPIP', 'IPv4 pods over IPv6, WireGuard']);
