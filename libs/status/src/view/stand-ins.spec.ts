import { describe, expect, it } from 'vitest';
import { peerOf } from '../report.testdata.ts';
import type { ConnectivityStatus } from '../report/connectivity-status.ts';
import type { Problem } from './cluster-view.ts';
import { composeView } from './compose.ts';
import type { ViewInputs } from './inputs.ts';
import { clusterInputs, NOW, withoutGateway, withReport } from './view.testdata.ts';

const WORKERS = ['w11', 'w12', 'w21', 'w22'];
const NOBODY = 'no other gateway of pool p1 carries traffic: sites behind it are cut off from one another';

type Inputs = ReturnType<typeof clusterInputs>;

/** Gateways that answer nobody. */
const without = (...gateways: readonly string[]): Inputs => {
  const inputs = clusterInputs();
  for (const gateway of gateways) withoutGateway(inputs, gateway);
  return inputs;
};

/** Packets of all nodes go to a gateway. */
const sendTo = (inputs: Inputs, gateway: string): void => {
  const withActive = ({ groups, ...status }: ConnectivityStatus): ConnectivityStatus => ({
    ...status,
    groups: Object.fromEntries(
      Object.entries(groups).map(([name, group]) => [
        name,
        { ...group, members: { ...group.members, [gateway]: { tier: 0, isActive: true } } },
      ]),
    ),
  });
  for (const node of WORKERS) withReport(inputs, node, withActive);
};

const problem = (inputs: ViewInputs, id: string): Problem | undefined =>
  composeView(inputs, undefined, NOW).problems[id];
const wayOf = (inputs: ViewInputs) => composeView(inputs, undefined, NOW).reach['s1']?.['s2'];

describe('a gateway that is down has a stand-in', () => {
  it('that answers and carries, as nodes say that use it', () => {
    expect(problem(without('g1'), 'Node/g1/GatewayDown')).toMatchObject({
      severity: 'warning',
      consequence: 'traffic goes by g2 instead',
    });
  });

  it('but not in one that is down itself and stays in use as the last of its group', () => {
    const inputs = without('g1', 'g2');
    sendTo(inputs, 'g2');
    expect(wayOf(inputs)).toMatchObject({ state: 'Unreachable', via: ['g2'] });
    for (const gateway of ['g1', 'g2'])
      expect(problem(inputs, `Node/${gateway}/GatewayDown`)).toMatchObject({
        severity: 'critical',
        consequence: NOBODY,
      });
  });

  it('but not in one of which a single node says that it carries, and most that it is down', () => {
    const inputs = without('g1', 'g2');
    inputs.reports.set('w11', clusterInputs().reports.get('w11')!);
    expect(wayOf(inputs)).toMatchObject({ state: 'Partial', via: ['g1', 'g2'] });
    for (const gateway of ['g1', 'g2'])
      expect(problem(inputs, `Node/${gateway}/GatewayDown`)).toMatchObject({
        severity: 'critical',
        consequence: NOBODY,
      });
  });

  it('but not in one of which a single node says that it forwards, and most that it does not', () => {
    const inputs = without('g1');
    for (const node of ['w12', 'w21', 'w22'])
      withReport(inputs, node, (status) => ({
        ...status,
        peers: { ...status.peers, g2: peerOf({ forwards: false }) },
      }));
    expect(problem(inputs, 'Node/g1/GatewayDown')?.severity).toBe('critical');
    expect(problem(inputs, 'Node/g2/GatewayDoesNotForward')?.severity).toBe('critical');
  });

  it('but not in one by which no node sees a way, beside one that carries or alone', () => {
    const inputs = without('g1');
    for (const node of WORKERS)
      withReport(inputs, node, (status) => {
        const { g2: _, ...peers } = status.peers;
        return { ...status, peers };
      });
    expect(wayOf(inputs)).toMatchObject({ state: 'Unreachable', via: ['g2'] });
    expect(problem(inputs, 'Node/g1/GatewayDown')?.severity).toBe('critical');
    for (const node of WORKERS)
      withReport(inputs, node, (status) => ({ ...status, peers: { ...status.peers, g3: peerOf() } }));
    sendTo(inputs, 'g3');
    const three = {
      ...inputs,
      nodes: [...inputs.nodes, { ...inputs.nodes.at(-1)!, name: 'g3' }],
      pools: [{ name: 'p1', gateways: ['g1', 'g2', 'g3'], connectedSites: ['s1', 's2'] }],
    };
    expect(wayOf(three)).toMatchObject({ state: 'Reachable', via: ['g2', 'g3'] });
    expect(problem(three, 'Node/g1/GatewayDown')?.consequence).toBe('traffic goes by g3 instead');
  });
});
