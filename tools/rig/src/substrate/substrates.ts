import type { LabLayout } from '../layout/layout.ts';
import { type SubstrateName, substrateName } from '../layout/substrate.ts';
import { bare } from './bare/bare.ts';
import { cluster } from './cluster/cluster.ts';
import type { Substrate } from './substrate.ts';

const SUBSTRATES: Readonly<Record<SubstrateName, Substrate>> = { cluster, bare };

/** What this lab stands on. */
export const substrateOf = ({ options }: LabLayout): Substrate => SUBSTRATES[substrateName(options)];
