import type { Explanation } from '@unbounded/egress';

const VERDICTS: Readonly<Record<Explanation['verdict'], string>> = {
  Egress: 'leaves with an egress address',
  Dropped: 'is dropped',
  NodeAddress: 'leaves with the address of the pod’s node',
  Inside: 'stays in the cluster',
  UnknownPod: 'no such pod',
};

/** An explanation for people: a line each for what becomes of the packet, the rule, the address, its owner, the reason, and other rules. */
export const explanationText = ({ verdict, rule, address, owner, reason, passedOver }: Explanation): string => {
  const lines: readonly (readonly [label: string, text: string | undefined])[] = [
    ['verdict', VERDICTS[verdict]],
    ['rule', rule],
    ['address', address],
    ['owner', owner],
    ['reason', reason],
    ...passedOver.map((other) => ['not used', `${other.rule}: ${other.reason}`] as const),
  ];
  return lines.flatMap(([label, text]) => (text === undefined ? [] : `${`${label}:`.padEnd(10)}${text}\n`)).join('');
};
