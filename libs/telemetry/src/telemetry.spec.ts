import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { expect, test } from 'vitest';

import { createLogger, createMetrics, startTracing, traced } from './index.ts';

test('a log line is one JSON object without secrets', () => {
  const lines: string[] = [];
  const logger = createLogger({ name: 'relay', destination: { write: (line) => void lines.push(line) } });
  logger.warn({ peer: { privateKey: 'k', port: 1 }, token: 't' }, 'refused');
  expect(JSON.parse(lines[0]!)).toMatchObject({
    level: 'warn',
    name: 'relay',
    msg: 'refused',
    peer: { privateKey: '[redacted]', port: 1 },
    token: '[redacted]',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
  });
});

test('a metric asked for twice is the same metric', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'a_total', help: 'a', labels: ['x'] }).inc({ x: '1' });
  metrics.counter({ name: 'a_total', help: 'a', labels: ['x'] }).inc({ x: '1' });
  expect(await metrics.render()).toContain('a_total{x="1"} 2');
});

test('of the process too, counters and nothing else end in _total', async () => {
  const text = await createMetrics({ processMetrics: true }).render();
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  expect(types.length).toBeGreaterThan(20);
  expect(types.filter(([, name, type]) => name!.endsWith('_total') !== (type === 'counter'))).toEqual([]);
});

test('without an endpoint nothing is traced and the function still runs', async () => {
  const tracing = await startTracing('x', {});
  expect(await traced('a', {}, async (span) => span)).toBeUndefined();
  await tracing.stop();
});

test('spans are sent to the OTLP endpoint, also those of a failed call', async () => {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.setHeader('content-type', 'application/json').end('{}');
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = endpoint;
  try {
    const tracing = await startTracing('x', process.env);
    await expect(traced('reconcile', { site: 'a' }, () => Promise.reject(new Error('refused')))).rejects.toThrow(
      'refused',
    );
    await tracing.stop();
  } finally {
    delete process.env['OTEL_EXPORTER_OTLP_ENDPOINT'];
    server.close();
  }
  expect(bodies.join()).toContain('reconcile');
  expect(bodies.join()).toContain('refused');
});
