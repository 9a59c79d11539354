import { WIREGUARD_KEY_PATTERN } from './fields.ts';
import { annotations } from './names.ts';

/**
 * What the node agent may write into annotations of its Node: these and no others, with whole values that match. The chart's
 * policy has the same list; libs/testing compares them. Patterns are of RE2, in characters of ASCII, so that they bound bytes.
 *
 * A name that is new here is refused to agents by charts from before: charts are upgraded first.
 */
export const AGENT_ANNOTATIONS: Readonly<Record<string, string>> = {
  [annotations.wireGuardPublicKey]: WIREGUARD_KEY_PATTERN,
  [annotations.wireGuardNextPublicKey]: WIREGUARD_KEY_PATTERN,
  [annotations.wireGuardKeyGeneration]: '^[0-9]{1,9}$',
  [annotations.tunnelMtu]: '^[0-9]{1,5}$',
  [annotations.tunnelProtocols]: '^([A-Za-z0-9]{1,16}(,[A-Za-z0-9]{1,16}){0,15})?$',
  [annotations.features]: '^([a-z0-9-]{1,32}(,[a-z0-9-]{1,32}){0,15})?$',
};

/** A node's keys and their number mean something only together: they are written in one patch, or not at all. */
export const KEY_ANNOTATIONS: readonly string[] = [
  annotations.wireGuardPublicKey,
  annotations.wireGuardNextPublicKey,
  annotations.wireGuardKeyGeneration,
];

/** Bytes of the longest value of the list above: 16 features of 32 characters, and the commas between. */
export const LONGEST_AGENT_ANNOTATION = 16 * 32 + 15;

/** Characters of the text that asks for a new key: each agent keeps the last on its disk. */
export const LONGEST_ROTATION_REQUEST = 256;
