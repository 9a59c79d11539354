/** What is shown, as the part of the URL after `#`: `#/nodes/n1?q=a`. A link to it restores the view, and the server never sees it. */
export interface Address {
  /** Names, without slashes between. None: the overview. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

const encode = (text: string): string => encodeURIComponent(text.toWellFormed());

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', '%20'));
  } catch {
    return text; // typed by hand
  }
};

export const parseAddress = (hash: string): Address => {
  const text = hash.startsWith('#') ? hash.slice(1) : hash;
  const at = text.indexOf('?');
  const [path, query] = at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
  const pairs = query.split('&').flatMap((pair): [string, string][] => {
    const [name = '', ...value] = pair.split('=');
    return name === '' || value.join('=') === '' ? [] : [[decode(name), decode(value.join('='))]];
  });
  return {
    path: path
      .split('/')
      .filter((part) => part !== '')
      .map(decode),
    query: Object.fromEntries(pairs),
  };
};

/** What has no value is left out. */
export const formatAddress = ({ path, query }: Address): string => {
  const pairs = Object.entries(query)
    .filter(([name, value]) => name !== '' && value !== '')
    .map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return `#/${path.map(encode).join('/')}${pairs.length > 0 ? `?${pairs.join('&')}` : ''}`;
};

/** The address of a page, for links. */
export const hrefOf = (path: readonly string[], query: Readonly<Record<string, string>> = {}): string =>
  formatAddress({ path, query });

/** Undefined takes a value away. */
export const withQuery = (address: Address, change: Readonly<Record<string, string | undefined>>): Address => {
  const query = new Map(Object.entries(address.query));
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === '') query.delete(name);
    else query.set(name, value);
  }
  return { ...address, query: Object.fromEntries(query) };
};
