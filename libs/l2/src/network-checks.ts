import type { Network } from '@unbounded/crds';
import { containsAddress, overlaps, type Prefix, tryParseAddress, tryParsePrefix } from '@unbounded/ip';
import type { NetworkCondition } from './network-condition.ts';

const TYPE = 'Accepted';

interface Finding {
  readonly reason: string;
  readonly message: string;
}

/** Two Networks may have the same addresses: no packet is routed from one to the other. */
const overlapsOf = (prefixes: readonly (Prefix | undefined)[], { spec }: Network): Finding[] =>
  prefixes.flatMap((prefix, at): Finding[] => {
    const earlier = prefixes.findIndex((other, index) => index < at && prefix && other && overlaps(prefix, other));
    if (earlier < 0) return [];
    const message = `spec.prefixes[${at}] "${spec.prefixes[at]}": overlaps ${spec.prefixes[earlier]}, so that addresses would be given twice: leave one of the two`;
    return [{ reason: 'PrefixesOverlap', message }];
  });

const gatewaysOutside = (prefixes: readonly (Prefix | undefined)[], { spec }: Network): Finding[] =>
  (spec.gateways ?? []).flatMap((gateway, at): Finding[] => {
    const address = tryParseAddress(gateway);
    if (address && prefixes.some((prefix) => prefix && containsAddress(prefix, address))) return [];
    const message = `spec.gateways[${at}] "${gateway}": must be inside of spec.prefixes ${spec.prefixes.join(', ')}`;
    return [{ reason: 'GatewayOutside', message }];
  });

/** Whether a Network can be as it is written. */
export const checkNetwork = (network: Network): NetworkCondition => {
  const prefixes = network.spec.prefixes.map(tryParsePrefix);
  const findings = [...overlapsOf(prefixes, network), ...gatewaysOutside(prefixes, network)];
  const [first] = findings;
  if (!first) return { type: TYPE, status: 'True', reason: 'Accepted', message: 'the spec has no contradiction' };
  const message = findings.map((finding) => finding.message).join('; ');
  return { type: TYPE, status: 'False', reason: first.reason, message };
};
