import { expect, test } from 'vitest';
import { layoutOf } from '../layout/layout.ts';
import { drawTopology, whatNext } from './picture.ts';

test('the picture shows every node, and what the external address of the control plane is for', () => {
  const picture = drawTopology(layoutOf({}));
  expect(picture).toContain('s1-g1   gateway        10.1.0.21     external 203.0.113.111 (own interface)');
  expect(picture).toContain('external 203.0.113.99 (1:1 NAT: where other sites’ nodes find the API server)');
  expect(picture).not.toMatch(/ $/m);
});

test('what to try next names nodes and a pod that are there', () => {
  const pods = [
    { node: 's1-w1', ip: '100.65.3.2' },
    { node: 's2-w2', ip: '100.66.0.2' },
  ];
  const text = whatNext(layoutOf({}), pods);
  expect(text).toMatch(/tools\/lab exec s1-w1 -- ping -c3 100\.66\.0\.2 +a pod on s2-w2/);
  expect(text).toContain('tools/lab capture wan udp');
});

test('with one site there is nothing to capture between sites, and without pods nothing to ping', () => {
  const text = whatNext(layoutOf({ sites: 1, gateways: 0, workers: 0 }), []);
  expect(text).toContain('tools/lab exec s1-cp -- ip route');
  expect(text).not.toMatch(/ping|capture/);
});
