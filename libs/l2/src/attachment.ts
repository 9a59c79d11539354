import type { Network } from '@unbounded/crds';
import { type Labels, matchesLabels } from '@unbounded/label-selector';

/** What the labels of its namespace let a pod do in a Network. */
interface Attachment {
  readonly mayAttach: boolean;
  /** It may send what routers and DHCP servers send. */
  readonly isTrusted: boolean;
}

/** @param namespaceLabels those of the pod's namespace */
export const attachmentOf = ({ spec }: Network, namespaceLabels: Labels): Attachment => {
  const { namespaceSelector, trustedNamespaceSelector: trusted } = spec;
  const mayAttach = matchesLabels(namespaceSelector, namespaceLabels);
  // Absent: none, where an absent selector selects everything.
  return { mayAttach, isTrusted: mayAttach && trusted !== undefined && matchesLabels(trusted, namespaceLabels) };
};
