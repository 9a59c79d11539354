/** The words were wrong; the message says the valid input. Exit status 2. */
export class UsageError extends Error {}
