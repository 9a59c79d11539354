import type { AlertGroup } from '../alert.ts';

/** Pods as devices of a tailnet. */
export const tailnetAlerts: AlertGroup = {
  name: 'unbounded-tailnet',
  alerts: [
    {
      name: 'UnboundedTailnetDevicesNotRunning',
      expr: 'sum(max by (state) (unbounded_tailnet_devices{state=~"NeedsLogin|Unknown"})) > 0',
      for: '10m',
      severity: 'warning',
      summary: '{{ $value | humanize }} devices of the tailnet do not run.',
      description:
        '{{ $value | humanize }} TailnetDevices wait to log in, or no node has reported them. Their pods wait.',
    },
    {
      name: 'UnboundedTailnetAPIErrors',
      expr: 'sum by (operation, result) (increase(unbounded_tailnet_api_calls_total{result!="Success"}[5m])) > 3',
      for: '10m',
      severity: 'warning',
      summary: 'The control server of the tailnet answers {{ $labels.operation }} with {{ $labels.result }}.',
      description:
        '{{ $value | humanize }} requests {{ $labels.operation }} to the control server failed within 5 minutes ({{ $labels.result }}): no device is added or removed meanwhile.',
    },
  ],
};
