import { podAnnotations } from '@unbounded/crds';
import { type AskedNetwork, readAskedNetwork, refused } from './asked-network.ts';

/** What a pod asks for by its annotation. */

const [LONGEST_TEXT, MOST_NETWORKS] = [8192, 16];
const ANNOTATION = `annotation ${podAnnotations.networks}:`;
const VALUE = `${ANNOTATION} value`;
/** Of the pod's first network, and of every pod. */
const TAKEN_INTERFACES: ReadonlySet<string> = new Set(['eth0', 'lo']);

const readEntry = (entry: unknown, at: number): AskedNetwork => {
  const where = `${ANNOTATION} [${at}]`;
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw refused(where, entry, 'must be an object with network, and interface, mac, addresses, segment where wanted');
  return readAskedNetwork({ interface: `net${at + 1}`, ...entry }, { where, takenInterfaces: TAKEN_INTERFACES });
};

const readNames = (text: string): unknown[] =>
  text.split(',').map((part) => {
    const [network, device, ...rest] = part.trim().split('@');
    if (rest.length > 0) throw refused(VALUE, part.trim(), 'must be NETWORK or NETWORK@INTERFACE');
    return { network, ...(device === undefined ? {} : { interface: device }) };
  });

const readJson = (text: string): unknown[] => {
  try {
    return JSON.parse(text) as unknown[];
  } catch (error) {
    const valid = `is no JSON list (${(error as Error).message}): write names, comma-separated, or a list of objects`;
    throw refused(VALUE, text, valid);
  }
};

/** @throws RangeError which names field and value, and says what would be right */
export const parsePodNetworks = (text: string): readonly AskedNetwork[] => {
  if (text.length > LONGEST_TEXT) throw refused(VALUE, text, `must be at most ${LONGEST_TEXT} characters`);
  const trimmed = text.trim();
  if (trimmed === '') return [];
  const entries = trimmed.startsWith('[') ? readJson(trimmed) : readNames(trimmed);
  if (entries.length > MOST_NETWORKS)
    throw refused(VALUE, text, `names ${entries.length} networks: at most ${MOST_NETWORKS}`);
  const asked = entries.map(readEntry);
  const names = asked.map((one) => one.interface);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined)
    throw refused(`${ANNOTATION} interface`, twice, 'is there twice: each interface has a name of its own');
  return asked;
};
