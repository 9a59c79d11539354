import { annotations, NODE_FEATURES } from '@unbounded/crds';

/** What an agent's writes look like at their longest. */

const names = (length: number): string => Array.from({ length: 16 }, () => 'x'.repeat(length)).join(',');
/** The last character but one of a key has its two low bits clear. */
const key = `${'z'.repeat(42)}8=`;

/** Every annotation that an agent writes, with the longest value that its readers take. */
export const longestAnnotations: Readonly<Record<string, string>> = {
  [annotations.wireGuardPublicKey]: key,
  [annotations.wireGuardNextPublicKey]: key,
  [annotations.wireGuardKeyGeneration]: '999999999',
  [annotations.tunnelMtu]: '65535',
  [annotations.tunnelProtocols]: names(16),
  [annotations.features]: names(32),
};

/** And those that agents of today write, also the shortest. */
export const usualAnnotations: readonly (readonly [name: string, value: string])[] = [
  [annotations.wireGuardKeyGeneration, '1'],
  [annotations.tunnelMtu, '1280'],
  [annotations.tunnelProtocols, ''],
  [annotations.tunnelProtocols, 'WireGuard,IPIP,GENEVE,VXLAN,None'],
  [annotations.features, NODE_FEATURES.join(',')],
];

/** One character more than the longest, of an alphabet that the annotation has. */
export const tooLong = (name: string): string => {
  const longest = longestAnnotations[name]!;
  return name === annotations.wireGuardKeyGeneration || name === annotations.tunnelMtu ? `${longest}0` : `${longest}x`;
};
