/** What the survey says of one thing, as `tools/doctor` prints it. */
export interface Row {
  readonly name: string;
  readonly state: string;
  readonly advice: string;
  /** A file that changes it. */
  readonly file?: { readonly path: string; readonly content: string };
}

const INDENT = '      ';

const fileText = ({ path, content }: NonNullable<Row['file']>): string =>
  [`${INDENT}${path}:`, ...content.trimEnd().split('\n')].join(`\n${INDENT}`);

/** In the columns of tools/doctor. */
export const rowText = ({ name, state, advice, file }: Row): string =>
  `  ${name.padEnd(34)} ${state.padEnd(9)} ${advice}`.trimEnd() + (file ? `\n${fileText(file)}` : '');
