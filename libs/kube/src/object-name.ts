/** Names and namespaces of objects, as they stand in the path of a request. */

/** An RFC 1123 subdomain, which is the name of most kinds and, with fewer characters, of a namespace. */
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const LONGEST = 253;

/** Whether a Pod, Node, namespace or object of ours can have the name. What others wrote into a field need not be one. */
export const isObjectName = (text: string): boolean => text.length <= LONGEST && SUBDOMAIN.test(text);

/**
 * One segment of a path, whatever the text holds: it leads to no other object, kind or query.
 * @throws RangeError for what a URL folds, so that the rest of the path would mean something else
 */
export const pathSegment = (text: string): string => {
  if (text === '' || text === '.' || text === '..')
    throw new RangeError(`"${text}" is the name of no object: a name has a letter or digit at both ends`);
  return encodeURIComponent(text);
};
