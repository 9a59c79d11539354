import { describePromises } from './promises.ts';

/** The data path that is the default; with kernel routes: promises.full.lab.spec.ts. */

describePromises({ dataplane: 'ebpf' });
