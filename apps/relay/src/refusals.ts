/** What Error frames say: they end in an operator's log. */
export const REFUSALS = {
  notPermitted: 'this key is not permitted: the relay’s list of allowed keys does not have it (yet)',
  tooMany: 'too many clients: see --max-connections',
  unproven: 'authentication required: this relay takes only keys that are proven',
  provenByAnother: 'authentication required: another client has proven this key',
} as const;

/** Time that an Error frame gets to reach a client before its connection is cut. */
export const FAREWELL_MS = 2000;
