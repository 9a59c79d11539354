import { serveThread, tell } from '../thread/serve.ts';

let told = '';
serveThread<{ type: 'apply'; prefixes: readonly string[] }>(
  { niceness: 0 },
  {
    async handle({ prefixes }) {
      const text = prefixes.join();
      if (text !== told) tell({ type: 'heard', text });
      told = text;
      return [];
    },
    stop: async () => undefined,
  },
);
