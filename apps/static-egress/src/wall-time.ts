/** Since when an owner is one, which the status of a rule shows. Whole seconds, as in metav1.Time. */
export const wallTime = (): string => new Date().toISOString().replace(/\.\d+Z$/, 'Z');
