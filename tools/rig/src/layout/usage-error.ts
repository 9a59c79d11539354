/** The words were wrong; the message says what would be right. Exit status 2. */
export class UsageError extends Error {}
