import { describe } from 'vitest';
import { WORKER } from './firewalled-node.testdata.ts';
import { testFirewalledNode } from './firewalled-node.scenario.ts';

describe('at a worker behind the real firewalld', () => {
  testFirewalledNode(WORKER);
});
