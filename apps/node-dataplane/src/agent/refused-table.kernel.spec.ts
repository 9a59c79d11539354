import { describeRefusedTable } from './refused-table.testdata.ts';

/** By kernel routes: refused-table.full.kernel.spec.ts. */
describeRefusedTable('ebpf');
