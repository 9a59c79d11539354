import { describeNodeAddresses } from './node-addresses.testdata.ts';

describeNodeAddresses('netlink');
