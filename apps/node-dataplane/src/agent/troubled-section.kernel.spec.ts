import { describeTroubledSection } from './troubled-section.testdata.ts';

/** By kernel routes: troubled-section.full.kernel.spec.ts. */
describeTroubledSection('ebpf');
