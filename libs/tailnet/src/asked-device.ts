import { MAX_TAILNET_TAGS, TAILNET_TAG_PATTERN, tailnetAnnotations } from '@unbounded/crds';
import { isHostName } from './host-name.ts';

/** What a pod asks for by its annotations. */

/** Whether its containers wait for the addresses of the device. */
export type StartPolicy = 'WaitForDevice' | 'Immediate';

export interface AskedDevice {
  /** Absent: the default ones. */
  readonly tags?: readonly string[];
  readonly hostName?: string;
  readonly start: StartPolicy;
}

/** Why a pod is no device: field, value and what would be right. */
export class RefusedAnnotationError extends Error {
  override readonly name = 'RefusedAnnotationError';
}

type Annotations = Readonly<Record<string, string>>;

const [LONGEST_TEXT, LONGEST_SHOWN] = [1024, 60];
const TAG = new RegExp(TAILNET_TAG_PATTERN);

export const refusal = (annotation: string, value: string, valid: string): RefusedAnnotationError => {
  const shown = value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value;
  return new RefusedAnnotationError(`annotation ${annotation} is ${JSON.stringify(shown)}: ${valid}`);
};

const JOINS = new Map([
  ['true', true],
  ['false', false],
]);
const STARTS: ReadonlyMap<string, StartPolicy> = new Map([
  ['WaitForDevice', 'WaitForDevice'],
  ['Immediate', 'Immediate'],
]);

const oneOf = <T>(annotation: string, value: string, choices: ReadonlyMap<string, T>): T => {
  const chosen = choices.get(value);
  const valid = [...choices.keys()].map((choice) => `"${choice}"`).join(' or ');
  if (chosen === undefined) throw refusal(annotation, value, `must be ${valid}`);
  return chosen;
};

const tagsIn = (text: string): readonly string[] => {
  const annotation = tailnetAnnotations.tags;
  const tags = text.split(',').map((tag) => tag.trim());
  const wrong = tags.find((tag) => !TAG.test(tag));
  if (wrong !== undefined)
    throw refusal(annotation, text, `${JSON.stringify(wrong)} is no tag like tag:web: write them comma-separated`);
  const different = [...new Set(tags)];
  if (different.length > MAX_TAILNET_TAGS)
    throw refusal(annotation, text, `has ${different.length} tags: a device has at most ${MAX_TAILNET_TAGS}`);
  return different;
};

const hostNameIn = (text: string): string => {
  if (!isHostName(text)) {
    const valid = 'must be at most 63 lower-case letters, digits and dashes, neither first nor last a dash, like web-1';
    throw refusal(tailnetAnnotations.hostName, text, valid);
  }
  return text;
};

const textOf = (annotations: Annotations, annotation: string): string | undefined => {
  const text = Object.hasOwn(annotations, annotation) ? annotations[annotation]!.trim() : undefined;
  if (text !== undefined && text.length > LONGEST_TEXT)
    throw refusal(annotation, text, `must be at most ${LONGEST_TEXT} characters`);
  return text;
};

/**
 * Whether the pod asks to be a device, or declines; undefined: it says nothing.
 * @throws RefusedAnnotationError which names annotation and value, and says what would be right
 */
export const readJoin = (annotations: Annotations): boolean | undefined => {
  const text = textOf(annotations, tailnetAnnotations.join);
  return text === undefined ? undefined : oneOf(tailnetAnnotations.join, text, JOINS);
};

/** @throws RefusedAnnotationError which names annotation and value, and says what would be right */
export const readAskedDevice = (annotations: Annotations): AskedDevice => {
  const { tags, hostName, start } = tailnetAnnotations;
  const [tagsText, hostNameText, startText] = [tags, hostName, start].map((name) => textOf(annotations, name));
  return {
    ...(tagsText === undefined ? {} : { tags: tagsIn(tagsText) }),
    ...(hostNameText === undefined ? {} : { hostName: hostNameIn(hostNameText) }),
    start: startText === undefined ? 'Immediate' : oneOf(start, startText, STARTS),
  };
};
