import { DNS_LABEL_PATTERN } from '@unbounded/crds';

/** Names of devices in a tailnet: the first label of their DNS name (RFC 1123 2.1, RFC 1035 2.3.4). */

const LONGEST_LABEL = 63;
export const DIGEST_LENGTH = 8;
const LABEL = new RegExp(DNS_LABEL_PATTERN);

export const isHostName = (text: string): boolean => text.length <= LONGEST_LABEL && LABEL.test(text);

export interface NamedPod {
  readonly cluster: string;
  readonly namespace: string;
  readonly pod: string;
}

/** Lower-case letters, digits and single dashes, none of them first or last. */
const withDashes = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '');

/** With it begin the names that pods of the cluster get by their own. */
export const clusterPrefix = (cluster: string): string => `${withDashes(cluster)}-`;

/** As much of the name as there is room for beside the digits of a digest. */
export const withDigest = (name: string, digest: string): string => {
  const kept = name.slice(0, LONGEST_LABEL - DIGEST_LENGTH - 1).replace(/-+$/, '');
  return kept === '' ? `pod-${digest}` : `${kept}-${digest}`;
};

/**
 * `CLUSTER-NAMESPACE-POD`. Where a character is not allowed or the name is too long, eight digits of a digest stand at its
 * end instead of what was lost, so that no two such names become one. The names `a-b` in `c` and `b` in `c-a` are one
 * name all the same; a control server tells such devices apart by a number.
 * @param digestOf hexadecimal, at least eight digits, other ones for another text (SHA-256)
 */
export const hostNameOf = ({ cluster, namespace, pod }: NamedPod, digestOf: (text: string) => string): string => {
  const asked = `${cluster}-${namespace}-${pod}`;
  const name = withDashes(asked);
  if (name === asked && isHostName(name)) return name;
  return withDigest(name, digestOf(`${cluster}/${namespace}/${pod}`).slice(0, DIGEST_LENGTH));
};
