import { isStationMac } from './mac.ts';

/** A Network that a pod asks for: by an annotation, or by the CNI configuration of a second interface. */

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

const [MOST_ADDRESSES, LONGEST_SHOWN] = [16, 60];
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/;
/** Part of the name of an object, too. */
const INTERFACE_NAME = /^[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$/;
const FIELDS: ReadonlySet<string> = new Set(['network', 'interface', 'mac', 'addresses', 'segment']);

/** @param field with what it is a field of, in words */
export const refused = (field: string, value: unknown, valid: string): RangeError => {
  const shown = typeof value === 'string' ? `"${value}"` : (JSON.stringify(value) ?? String(value));
  const text = shown.length > LONGEST_SHOWN ? `${shown.slice(0, LONGEST_SHOWN)}…` : shown;
  return new RangeError(`${field} is ${text}: ${valid}`);
};

const checked = <T>(field: string, value: unknown, isValid: (value: unknown) => value is T, valid: string): T => {
  if (!isValid(value)) throw refused(field, value, valid);
  return value;
};
const textThat =
  (isValid: (text: string) => boolean) =>
  (value: unknown): value is string =>
    typeof value === 'string' && isValid(value);
const isName = textThat((text) => OBJECT_NAME.test(text));

const isAddressList = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= MOST_ADDRESSES &&
  value.every((one) => typeof one === 'string');

const STATION = 'must be the MAC address of a station like 02:00:5e:10:00:01';
const ADDRESSES = `must be a list of 1 to ${MOST_ADDRESSES} addresses like ["192.0.2.7"]`;

/** Whose names interfaces may not have that somebody else makes. */
export interface AskedPlace {
  /** In words, before the names of fields. */
  readonly where: string;
  readonly takenInterfaces: ReadonlySet<string>;
}

/** @throws RangeError which names field and value, and says what would be right */
export const readAskedNetwork = (
  fields: Readonly<Record<string, unknown>>,
  { where, takenInterfaces }: AskedPlace,
): AskedNetwork => {
  const unknown = Object.keys(fields).find((name) => !FIELDS.has(name));
  if (unknown !== undefined)
    throw refused(`${where}.${unknown}`, fields[unknown], `must be one of ${[...FIELDS].join(', ')}`);
  const { network, interface: device, mac, addresses, segment } = fields;
  const isInterface = textThat((text) => INTERFACE_NAME.test(text) && !takenInterfaces.has(text));
  const others = [...takenInterfaces].join(' nor ');
  const INTERFACE = `must be at most 15 lower-case letters, digits and dashes, and neither ${others}`;
  const SEGMENT = 'must be the name of a segment of the Network';
  return {
    network: checked(`${where}.network`, network, isName, 'must be the name of a Network'),
    interface: checked(`${where}.interface`, device, isInterface, INTERFACE),
    ...(mac === undefined ? {} : { mac: checked(`${where}.mac`, mac, textThat(isStationMac), STATION) }),
    ...(addresses === undefined
      ? {}
      : { addresses: checked(`${where}.addresses`, addresses, isAddressList, ADDRESSES) }),
    ...(segment === undefined ? {} : { segment: checked(`${where}.segment`, segment, isName, SEGMENT) }),
  };
};
