/** RFC 1123 subdomain, as names of Nodes are. */
const NODE_NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

export const isNodeName = (text: string): boolean => NODE_NAME.test(text);
