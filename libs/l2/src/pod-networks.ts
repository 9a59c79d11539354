import { podAnnotations } from '@unbounded/crds';
import { isStationMac } from './mac.ts';

/** What a pod asks for by its annotation. */

export interface AskedNetwork {
  readonly network: string;
  /** Name of the interface in the pod. */
  readonly interface: string;
  /** Of the interface; not set: one that follows from the names of network, pod and interface. */
  readonly mac?: string;
  /** Fixed ones, as text; not set: one of each family of the network. */
  readonly addresses?: readonly string[];
  readonly segment?: string;
}

const [LONGEST_TEXT, MOST_NETWORKS, MOST_ADDRESSES, LONGEST_SHOWN] = [8192, 16, 16, 60];
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
/** Part of the name of an object, too. */
const INTERFACE_NAME = /^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/;
const TAKEN_INTERFACES: ReadonlySet<string> = new Set(['eth0', 'lo']);
const FIELDS: ReadonlySet<string> = new Set(['network', 'interface', 'mac', 'addresses', 'segment']);

const refused = (field: string, value: unknown, valid: string): RangeError => {
  const shown = typeof value === 'string' ? `"${value}"` : (JSON.stringify(value) ?? String(value));
  const text = shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}…` : shown;
  return new RangeError(`annotation ${podAnnotations.networks}: ${field} is ${text}: ${valid}`);
};

const checked = <T>(field: string, value: unknown, isValid: (value: unknown) => value is T, valid: string): T => {
  if (!isValid(value)) throw refused(field, value, valid);
  return value;
};
const textThat =
  (isValid: (text: string) => boolean) =>
  (value: unknown): value is string =>
    typeof value === 'string' && isValid(value);

const isAddressList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MOST_ADDRESSES &&
  value.every((one) => typeof one === 'string');

const readEntry = (entry: unknown, at: number): AskedNetwork => {
  const where = `[${at}]`;
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry))
    throw refused(where, entry, 'must be an object with network, and interface, mac, addresses, segment where wanted');
  const fields = entry as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(fields).find((name) => !FIELDS.has(name));
  if (unknown !== undefined)
    throw refused(`${where}.${unknown}`, fields[unknown], `must be one of ${[...FIELDS].join(', ')}`);
  const { network, interface: device = `net${at + 1}`, mac, addresses, segment } = fields;
  const isName = textThat((text) => OBJECT_NAME.test(text));
  return {
    network: checked(`${where}.network`, network, isName, 'must be the name of a Network'),
    interface: checked(
      `${where}.interface`,
      device,
      textThat((text) => INTERFACE_NAME.test(text) && !TAKEN_INTERFACES.has(text)),
      'must be at most 15 lower-case letters, digits and dashes, and neither eth0 nor lo',
    ),
    ...(mac === undefined
      ? {}
      : {
          mac: checked(
            `${where}.mac`,
            mac,
            textThat(isStationMac),
            'must be the MAC address of a station like 02:00:5e:10:00:01',
          ),
        }),
    ...(addresses === undefined
      ? {}
      : {
          addresses: checked(
            `${where}.addresses`,
            addresses,
            isAddressList,
            `must be a list of 1 to ${MOST_ADDRESSES} addresses like ["192.0.2.7"]`,
          ),
        }),
    ...(segment === undefined
      ? {}
      : { segment: checked(`${where}.segment`, segment, isName, 'must be the name of a segment of the Network') }),
  };
};

const readNames = (text: string): unknown[] =>
  text.split(',').map((part) => {
    const [network, device, ...rest] = part.trim().split('@');
    if (rest.length > 0) throw refused('value', part.trim(), 'must be NETWORK or NETWORK@INTERFACE');
    return { network, ...(device === undefined ? {} : { interface: device }) };
  });

const readJson = (text: string): unknown[] => {
  try {
    return JSON.parse(text) as unknown[];
  } catch (error) {
    throw refused(
      'value',
      text,
      `is no JSON list (${(error as Error).message}): write names, comma-separated, or a list of objects`,
    );
  }
};

/** @throws RangeError which names field and value, and says what would be right */
export const parsePodNetworks = (text: string): readonly AskedNetwork[] => {
  if (text.length > LONGEST_TEXT) throw refused('value', text, `must be at most ${LONGEST_TEXT} characters`);
  const trimmed = text.trim();
  if (trimmed === '') return [];
  const entries = trimmed.startsWith('[') ? readJson(trimmed) : readNames(trimmed);
  if (entries.length > MOST_NETWORKS)
    throw refused('value', text, `names ${entries.length} networks: at most ${MOST_NETWORKS}`);
  const asked = entries.map(readEntry);
  const names = asked.map((one) => one.interface);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw refused('interface', twice, 'is there twice: each interface has a name of its own');
  return asked;
};
