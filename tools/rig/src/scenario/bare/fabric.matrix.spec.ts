import { type CaseName, CASES } from './cases.ts';
import { expectCases } from './expectations.ts';

/** Every tunnel protocol in both data paths, over IPv4 and IPv6, and over links that delay, lose and reorder. */

expectCases(Object.keys(CASES) as CaseName[]);
