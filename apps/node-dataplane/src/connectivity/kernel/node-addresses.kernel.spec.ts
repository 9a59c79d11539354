import { describeNodeAddresses } from './node-addresses.testdata.ts';

/** By kernel routes: node-addresses.full.kernel.spec.ts. */
describeNodeAddresses('ebpf');
