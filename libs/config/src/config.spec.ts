import fc from 'fast-check';
import { expect, test, vi } from 'vitest';

import {
  choice,
  ConfigError,
  describeConfig,
  duration,
  flag,
  option,
  path,
  port,
  readConfig,
  text,
  textOr,
} from './index.ts';

const options = {
  healthPort: option(port(9999), 'The port.'),
  leaderElect: option(flag(true), 'Elect.'),
  mode: option(choice(['a', 'b'], 'a'), 'The mode.'),
  renewEvery: option(duration('2s'), 'The interval.'),
  kubeconfig: option(path, 'The file.'),
  namespace: option(text('default'), 'The namespace.'),
};
const read = (argv: string[], env: Record<string, string> = {}) => readConfig(options, { argv, env });

test('defaults hold when nothing is given, and the result is frozen', () => {
  const config = read([]);
  expect(config).toEqual({ healthPort: 9999, leaderElect: true, mode: 'a', renewEvery: 2000, namespace: 'default' });
  expect(Object.isFrozen(config)).toBe(true);
});

test('a flag wins over a variable, a variable over the default', () => {
  const env = { UNBOUNDED_HEALTH_PORT: '1', UNBOUNDED_MODE: 'b' };
  expect(read(['--health-port', '2'], env)).toMatchObject({ healthPort: 2, mode: 'b' });
});

test.each([
  ['--flag=value', ['--leader-elect=false'], { leaderElect: false }],
  ['--flag value', ['--renew-every', '5m'], { renewEvery: 300_000 }],
  ['a bare flag is true', ['--leader-elect', '--mode', 'b'], { leaderElect: true, mode: 'b' }],
])('%s', (_, argv, want) => expect(read(argv)).toMatchObject(want));

test.each([
  [['--health-port', '70000'], '--health-port is "70000": must be an integer from 0 to 65535'],
  [['--health-port', '1e3'], '--health-port is "1e3": must be an integer from 0 to 65535'],
  [['--leader-elect', 'yes'], '--leader-elect is "yes": must be true or false'],
  [['--mode', 'c'], '--mode is "c": must be one of a, b'],
  [['--renew-every', '5'], '--renew-every is "5": must be a duration like 250ms, 15s, 5m or 1h'],
  [['--kubeconfig', ''], '--kubeconfig is "": must not be empty'],
])('%j is refused: %s', (argv, message) => expect(() => read(argv)).toThrow(message));

test('what has no default is the setting, else a variable of the process; with neither it is missing', () => {
  const name = { nodeName: option(textOr('TEST_NODE_NAME'), 'The Node.') };
  const missing = '--node-name is missing: must be given, or TEST_NODE_NAME be set';
  expect(() => readConfig(name, { argv: [], env: {} })).toThrow(missing);
  expect(() => readConfig(name, { argv: ['--node-name='], env: {} })).toThrow('--node-name is "": must be given');
  vi.stubEnv('TEST_NODE_NAME', 'w1');
  expect(readConfig(name, { argv: [], env: {} })).toEqual({ nodeName: 'w1' });
  expect(readConfig(name, { argv: ['--node-name', 'w2'], env: {} })).toEqual({ nodeName: 'w2' });
  vi.unstubAllEnvs();
});

test('all problems are told at once, unknown flags among them', () => {
  const attempt = () => read(['--helth-port', '1', '--mode', 'c'], { UNBOUNDED_LEADER_ELECT: 'no' });
  expect(attempt).toThrow(ConfigError);
  expect(attempt).toThrow(/--helth-port is not known[\s\S]*UNBOUNDED_LEADER_ELECT is "no"[\s\S]*--mode is "c"/);
});

test('the reference shows flag, variable, default and meaning', () => {
  expect(describeConfig('app', options)).toContain('--health-port   UNBOUNDED_HEALTH_PORT   9999     The port.');
});

test('whatever is given, it is a configuration or a ConfigError', () => {
  const word = fc.oneof(
    fc.constantFrom('--health-port', '--mode=b', '--leader-elect', '--renew-every', '5s', '--', '='),
    fc.string({ maxLength: 12 }),
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 6 }), (argv) => {
      try {
        expect(Object.keys(readConfig(options, { argv, env: {} }))).toHaveLength(6);
      } catch (error) {
        expect(error).toBeInstanceOf(ConfigError);
      }
    }),
  );
});
