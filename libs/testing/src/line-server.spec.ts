import { afterEach, expect, test } from 'vitest';
import { type LineServer, startLineServer } from './line-server.ts';
import { startPerl } from './perl-server.ts';

let server: Pick<LineServer, 'end'> | undefined;
afterEach(() => server?.end());
const shell = (script: string, timeoutMs?: number): LineServer => {
  const started = startLineServer('sh', ['-c', script], timeoutMs === undefined ? {} : { timeoutMs });
  server = started;
  return started;
};

test('requests are answered in their order, one at a time', async () => {
  const { ask } = shell('while read a; do read -t 0 b && echo early; echo "ok $a"; done');
  expect(await Promise.all(['1', 'two words', '3'].map(ask))).toEqual(['1', 'two words', '3']);
});

test('ok alone is an answer', async () => {
  const { ask } = shell('while read line; do echo ok; done');
  expect(await ask('a')).toBe('');
});

test('any other answer is an error of this request alone', async () => {
  const { ask } = shell('read a; echo "okay, but $a"; read b; echo "ok $b"');
  await expect(ask('first')).rejects.toThrow('okay, but first');
  expect(await ask('second')).toBe('second');
});

test('a process that ends rejects what is pending and what comes later, with its stderr', async () => {
  const { ask } = shell('read a; echo "broken: $a" >&2; exit 3');
  const [first, second] = await Promise.allSettled([ask('one'), ask('two')]);
  const error = new Error('sh: ended with 3: broken: one');
  expect([first, second]).toEqual([
    { status: 'rejected', reason: error },
    { status: 'rejected', reason: error },
  ]);
  await expect(ask('three')).rejects.toThrow(error);
});

test('a program that is missing is an error', async () => {
  await expect(startLineServer('/nonexistent/program', []).ask('one')).rejects.toThrow('ENOENT');
});

test('a process that does not answer in time is ended', async () => {
  const { ask } = shell('read a; exec sleep 60', 50);
  await expect(ask('one')).rejects.toThrow('sh: no answer within 50 ms to: one');
  await expect(ask('two')).rejects.toThrow('no answer within 50 ms to: one');
});

test('the process ends at the end of its input', async () => {
  const { ask, end } = shell('read a; echo ok; cat; echo over >&2; exit 0');
  await ask('one');
  end();
  await expect(ask('two')).rejects.toThrow('sh: ended with 0: over');
});

test('of Perl: words in, what a function returns or dies of out', async () => {
  const perl = startPerl([], 'sub answer { my ($a, $b) = @_; $a or return; $b > 0 or die "no $b\\n"; $a / $b }');
  server = perl;
  expect(await perl.ask(6, 3)).toBe('2');
  await expect(perl.ask(6, -1)).rejects.toThrow(/^error: no -1/);
  expect(await perl.ask(0)).toBe('');
});
