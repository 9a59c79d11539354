import type { Problem, WaitReason } from '@unbounded/topology';

/** What people are told of an exchange that does not come to its end: the same text for the same state. */

const LISTED = 5;

const WHY: Readonly<Record<WaitReason, string>> = {
  NoHandshake:
    'no handshake with the new key (its agent must run, reach the API server and support key rotation; firewalls must admit the ports of the new key)',
  OldKeyInUse: 'still sends with the old key',
  AgentSilent: 'does not answer probes, so its sending key is unknown',
  Unaware: 'has not received the new key',
};

const namesOf = (nodes: readonly string[]): string => {
  const more = nodes.length > LISTED ? ` and ${nodes.length - LISTED} more` : '';
  return `${nodes.slice(0, LISTED).join(', ')}${more}`;
};

export const waitingProblems = (generation: number, waits: ReadonlyMap<string, WaitReason>): Problem[] => {
  const parts = (Object.keys(WHY) as WaitReason[]).flatMap((why) => {
    const nodes = [...waits].filter(([, reason]) => reason === why).map(([node]) => node);
    return nodes.length === 0 ? [] : [`${namesOf(nodes)}: ${WHY[why]}`];
  });
  if (parts.length === 0) return []; // about to go on
  const message = `key rotation to generation ${generation} is blocked, and both keys are in use meanwhile; it waits for ${parts.join('; ')}`;
  return [{ reason: 'KeyRotationBlocked', message }];
};
