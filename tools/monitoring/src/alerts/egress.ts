import type { AlertGroup } from '../alert.ts';

const ADDRESSES = 'unbounded_net_controller_egress_addresses';

/** Fixed addresses by which pods leave. */
export const egressAlerts: AlertGroup = {
  name: 'unbounded-egress',
  alerts: [
    {
      name: 'UnboundedEgressAddressUnowned',
      expr: `max(${ADDRESSES}{state="unowned"}) > 0`,
      for: '2m',
      severity: 'critical',
      summary: '{{ $value | humanize }} egress addresses have no owner.',
      description: 'No live node can own them: pods that leave by these addresses reach nothing outside.',
    },
    {
      name: 'UnboundedEgressAddressSilent',
      expr: `max(${ADDRESSES}{state="silent"}) > 0`,
      for: '5m',
      severity: 'critical',
      summary: 'The owners of {{ $value | humanize }} egress addresses do not answer.',
      description:
        'The nodes that own these addresses send no signs of life, and nobody else may take the addresses while such a node may still use them.',
    },
    {
      name: 'UnboundedEgressAddressNotHeld',
      expr: 'min by (node, address) (unbounded_egress_address_held) == 0',
      for: '5m',
      severity: 'warning',
      summary: '{{ $labels.node }} owns the egress address {{ $labels.address }} and does not hold it.',
      description: '{{ $labels.node }} was given {{ $labels.address }} and may not send with it yet, for 5 minutes.',
    },
    {
      name: 'UnboundedEgressPortsNearlyExhausted',
      expr: 'max by (node, address) (unbounded_egress_ports_used_ratio) > 0.8',
      for: '5m',
      severity: 'warning',
      summary: '{{ $value | humanizePercentage }} of the ports of {{ $labels.address }} are in use to one destination.',
      description: 'New connections by {{ $labels.address }} on {{ $labels.node }} to that destination will soon fail.',
    },
    {
      name: 'UnboundedEgressProblems',
      expr: 'max by (reason) (unbounded_net_controller_egress_problems) > 0',
      for: '15m',
      severity: 'warning',
      summary: '{{ $value | humanize }} conditions of egress rules or pools are False: {{ $labels.reason }}.',
      description: 'The condition of the rule or pool names field, value and remedy.',
    },
  ],
};
