import { describeRefusedTable } from './refused-table.testdata.ts';

describeRefusedTable('netlink');
