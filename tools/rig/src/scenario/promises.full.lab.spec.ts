import { describePromises } from './promises.ts';

/** As promises.lab.spec.ts, with the data path of kernel routes. */

describePromises({ dataplane: 'netlink' });
