import { TAILNET_DEFAULTS, tailnetAnnotations, type TailnetSettings } from '@unbounded/crds';
import { type Labels, matchesLabels } from '@unbounded/label-selector';
import { readAskedDevice, readJoin, refusal, type StartPolicy } from './asked-device.ts';
import { clusterPrefix, hostNameOf, type NamedPod } from './host-name.ts';

/** Who becomes a device: what the pod asks for, as far as a rule of the Mesh allows it. */

/** As the API server has it: nothing of it is taken from the pod itself. */
export interface JoiningPod {
  readonly namespace: string;
  readonly name: string;
  readonly namespaceLabels: Labels;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface WantedDevice {
  readonly hostName: string;
  /** It is not the pod's own name. */
  readonly isNameAsked?: true;
  readonly tags: readonly string[];
  readonly start: StartPolicy;
}

export const REQUEST = tailnetAnnotations.join;

const checkTags = (tags: readonly string[], allowed: readonly string[]): void => {
  const refusedTag = tags.find((tag) => !allowed.includes(tag));
  if (refusedTag === undefined) return;
  const valid = `${refusedTag} is not allowed in its namespace: write ${allowed.join(', ')}, or add it to allowedTags of the rule in Mesh.spec.tailnet.rules`;
  throw refusal(tailnetAnnotations.tags, tags.join(','), valid);
};

/** A pod of another namespace would have the name of one that is down for a moment, and get what is sent to that one. */
const checkHostName = (asked: string | undefined, ownName: string, { cluster }: NamedPod): void => {
  const prefix = clusterPrefix(cluster);
  if (asked === undefined || asked === ownName || !asked.startsWith(prefix)) return;
  const valid = `names that begin with ${prefix} are those of pods by their namespace: ask for another one, or leave the annotation out`;
  throw refusal(tailnetAnnotations.hostName, asked, valid);
};

/**
 * The device that a pod is to be; undefined: none. A pod that neither asks nor is covered by a rule is nobody's concern.
 * @param digestOf as {@link hostNameOf} has it
 * @throws RefusedAnnotationError which names annotation and value, and says what would be right: the pod is no device
 */
export const planDevice = (
  settings: TailnetSettings | undefined,
  pod: JoiningPod,
  digestOf: (text: string) => string,
): WantedDevice | undefined => {
  const rule = settings?.rules.find(({ namespaceSelector }) => matchesLabels(namespaceSelector, pod.namespaceLabels));
  const joins = readJoin(pod.annotations) ?? rule?.join === 'UnlessDeclined';
  if (!joins) return undefined;
  if (!settings)
    throw refusal(REQUEST, 'true', 'there is no Mesh.spec.tailnet: write one, or leave the annotation out');
  if (!rule) {
    const valid = `no rule selects namespace ${pod.namespace}: add one to Mesh.spec.tailnet.rules, or leave the annotation out`;
    throw refusal(REQUEST, 'true', valid);
  }
  const asked = readAskedDevice(pod.annotations);
  const defaults = settings.defaultTags ?? TAILNET_DEFAULTS.tags;
  const tags = asked.tags ?? defaults;
  checkTags(tags, [...new Set([...defaults, ...(rule.allowedTags ?? [])])]);
  const named = {
    cluster: settings.clusterName ?? TAILNET_DEFAULTS.clusterName,
    namespace: pod.namespace,
    pod: pod.name,
  };
  const ownName = hostNameOf(named, digestOf);
  checkHostName(asked.hostName, ownName, named);
  const isOther = asked.hostName !== undefined && asked.hostName !== ownName;
  return {
    hostName: asked.hostName ?? ownName,
    ...(isOther && { isNameAsked: true }),
    tags,
    start: asked.start,
  };
};
