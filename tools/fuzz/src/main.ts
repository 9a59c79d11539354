import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { fuzz } from './fuzz.ts';
import { reproduceNative } from './run-native.ts';
import { reproduce } from './run-typescript.ts';
import { harnesses } from './targets.ts';

const USAGE = `usage: main.ts [NAME] [--seconds 60] [--seed 1] [--write]   searches: one harness, or each for so many seconds
       main.ts NAME FILE                                      runs one input, as a search wrote it
--write takes what was learned into tools/fuzz/corpora. Harnesses: ${harnesses()
  .map(({ name }) => name)
  .join(', ')}`;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const [name, inputFile] = positionals;
const chosen = harnesses().filter((harness) => name === undefined || harness.name === name);
if (values.help || chosen.length === 0) {
  console.error(USAGE);
  process.exit(2);
}
const [first] = chosen;
if (inputFile !== undefined && first?.language === 'c') process.exit(reproduceNative(first.file, inputFile));
if (inputFile !== undefined && first) {
  await reproduce(first.file, new Uint8Array(readFileSync(inputFile)));
  console.log(`${first.name}: nothing found`);
  process.exit(0);
}
for (const harness of chosen) {
  const {
    runs,
    features,
    corpus,
    finding,
    reproduce: command,
  } = await fuzz(harness, {
    seconds: Number(values.seconds),
    seed: Number(values.seed),
    write: values.write,
  });
  console.log(`${harness.name}: ${runs} runs, ${features} features, ${corpus.length} inputs`);
  if (!finding) continue;
  console.log(`${finding.error}\nrun it again: ${command}`);
  process.exitCode = 1;
}
