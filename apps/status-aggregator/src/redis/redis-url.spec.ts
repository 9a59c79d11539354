import { describe, expect, it } from 'vitest';
import { redisErrorText } from './redis-error.ts';
import { parseRedisUrl } from './redis-url.ts';

describe('the URL of Redis', () => {
  it.each([
    ['redis://redis.example', { host: 'redis.example', port: 6379, database: 0, username: undefined, isTls: false }],
    ['rediss://u@[fd00::1]:6380/3', { host: 'fd00::1', port: 6380, database: 3, username: 'u', isTls: true }],
    ['redis://10.0.0.1:1/', { host: '10.0.0.1', port: 1, database: 0, username: undefined, isTls: false }],
  ])('%s', (text, address) => {
    expect(parseRedisUrl(text)).toEqual(address);
  });

  it.each(['', 'redis', 'http://r', 'redis://', 'redis://r/x', 'redis://r/-1', 'redis://r/9999', 'redis://r?a=b'])(
    'is refused: "%s"',
    (text) => {
      expect(() => parseRedisUrl(text)).toThrow('--redis-url: must be redis://');
    },
  );

  it('has no password, and the refusal does not repeat it', () => {
    expect(() => parseRedisUrl('redis://u:battery@r')).toThrow('must have no password');
    expect(() => parseRedisUrl('redis://u:battery@r')).not.toThrow('battery');
  });
});

describe('what is said of an error', () => {
  it.each([
    [Object.assign(new Error('WRONGPASS battery'), { command: { args: ['battery'] } }), 'WRONGPASS'],
    [new Error('ERR unknown command, with args beginning with: battery'), 'ERR'],
    [Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }), 'refused'],
    [new Error('Command timed out'), 'no answer in time'],
    [new Error('battery'), 'the connection ended'],
    ['battery', 'the connection ended'],
  ])('names its kind and no argument: %s', (error, text) => {
    expect(redisErrorText(error)).toContain(text);
    expect(redisErrorText(error)).not.toContain('battery');
  });
});
