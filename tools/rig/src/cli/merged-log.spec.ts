import { expect, test } from 'vitest';
import { mergedLog } from './merged-log.ts';

const line = (second: number, msg: string): string =>
  JSON.stringify({ level: 'info', time: `2026-01-01T00:00:0${second}.000Z`, msg });

test('lines of several logs stand by time, each with its label; what has no time stays with the line before it', () => {
  const logs = [
    { label: 'app-1', text: `${line(1, 'leads')}\n${line(4, 'fails')}\n  at somewhere\n` },
    { label: 'app-2', text: `${line(2, 'waits')}\n${line(5, 'leads')}\n` },
  ];
  expect(mergedLog(logs)).toBe(
    [
      `app-1  ${line(1, 'leads')}`,
      `app-2  ${line(2, 'waits')}`,
      `app-1  ${line(4, 'fails')}`,
      'app-1    at somewhere',
      `app-2  ${line(5, 'leads')}`,
      '',
    ].join('\n'),
  );
});

test('lines that have labels already are sorted as they are; nothing is nothing', () => {
  const text = `[pod/a/app] ${line(2, 'b')}\n[pod/b/app] ${line(1, 'a')}\n`;
  expect(mergedLog([{ label: '', text }])).toBe(`[pod/b/app] ${line(1, 'a')}\n[pod/a/app] ${line(2, 'b')}\n`);
  expect(mergedLog([])).toBe('');
});
