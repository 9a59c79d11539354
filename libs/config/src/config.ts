import type { z } from 'zod';

/** One setting of a program. Its key in camelCase gives the flag (`--health-port`) and the variable (`UNBOUNDED_HEALTH_PORT`). */
export interface Option<T> {
  /** Reads the text of a flag or variable; `undefined` when neither is given, so defaults stand in the schema. */
  readonly schema: z.ZodType<T>;
  /** A sentence for the reference. */
  readonly help: string;
}

export type Options = Readonly<Record<string, Option<unknown>>>;
export type ConfigOf<O extends Options> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

/** All problems at once, one a line: the setting, its value and the valid input. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

export const option = <T>(schema: z.ZodType<T>, help: string): Option<T> => ({ schema, help });

const words = (key: string): string[] => key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).split('-');
const flagOf = (key: string): string => `--${words(key).join('-')}`;
const variableOf = (key: string): string => `UNBOUNDED_${words(key).join('_').toUpperCase()}`;

interface Given {
  readonly text: string;
  /** How the person gave it, for messages. */
  readonly by: string;
}

const readFlags = (argv: readonly string[], keys: readonly string[], problems: string[]): Map<string, Given> => {
  const keyOf = new Map(keys.map((key) => [flagOf(key), key]));
  const given = new Map<string, Given>();
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    const split = argument.indexOf('=');
    const flag = split < 0 ? argument : argument.slice(0, split);
    const key = keyOf.get(flag);
    if (key === undefined) {
      problems.push(`${argument} is not known: the flags are ${[...keyOf.keys()].join(', ')} and --help`);
      continue;
    }
    const next = argv[index + 1];
    if (split >= 0) given.set(key, { text: argument.slice(split + 1), by: flag });
    else if (next !== undefined && !next.startsWith('--')) {
      given.set(key, { text: next, by: flag });
      index++;
    } else given.set(key, { text: 'true', by: flag });
  }
  return given;
};

export interface Sources {
  /** Without the interpreter and the script. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Flags win over variables, variables over defaults. The result is frozen. @throws ConfigError */
export const readConfig = <O extends Options>(options: O, { argv, env }: Sources): ConfigOf<O> => {
  const problems: string[] = [];
  const flags = readFlags(argv, Object.keys(options), problems);
  const values: Record<string, unknown> = {};
  for (const [key, { schema }] of Object.entries(options)) {
    const variable = variableOf(key);
    const fromEnv = env[variable];
    const given = flags.get(key) ?? (fromEnv === undefined ? undefined : { text: fromEnv, by: variable });
    const parsed = schema.safeParse(given?.text);
    if (parsed.success) values[key] = parsed.data;
    else {
      const reasons = parsed.error.issues.map((issue) => issue.message).join('; ');
      problems.push(given ? `${given.by} is "${given.text}": ${reasons}` : `${flagOf(key)} is missing: ${reasons}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(values) as ConfigOf<O>;
};

const defaultOf = ({ schema }: Option<unknown>): string => {
  const parsed = schema.safeParse(undefined);
  if (!parsed.success) return 'required';
  return parsed.data === undefined ? '' : typeof parsed.data === 'string' ? parsed.data : JSON.stringify(parsed.data);
};

/** The reference as a table: flag, variable, default, sentence. */
export const describeConfig = (name: string, options: Options): string => {
  const rows = Object.entries(options).map(([key, entry]) => [
    flagOf(key),
    variableOf(key),
    defaultOf(entry),
    entry.help,
  ]);
  const table = [['FLAG', 'VARIABLE', 'DEFAULT', 'MEANING'], ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...table.map((row) => row[column]!.length)));
  const lines = table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `Usage: ${name} [FLAG VALUE]...\n\n${lines.join('\n')}\n`;
};

/** For main files: `--help` prints the reference and ends with 0, bad settings are printed and end with 2. */
export const loadConfig = <O extends Options>(name: string, options: O, process: NodeJS.Process): ConfigOf<O> => {
  const argv = process.argv.slice(2);
  if (argv.includes('--help')) {
    process.stdout.write(describeConfig(name, options));
    process.exit(0);
  }
  try {
    return readConfig(options, { argv, env: process.env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${name}: ${error.problems.join(`\n${name}: `)}\nRun with --help for all settings.\n`);
    process.exit(2);
  }
};
