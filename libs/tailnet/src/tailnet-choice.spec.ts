import type { TailnetSettings } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { chooseTailnet, type TailnetServer } from './tailnet-choice.ts';

const at = (host: string, secret = 's'): TailnetServer => ({
  controlURL: `https://${host}`,
  apiURL: `https://api.${host}`,
  credentials: { oauthClientSecret: secret },
});
const settings = (host: string, secret?: string): TailnetSettings => ({ ...at(host, secret), rules: [] });
const [a, b] = [settings('a'), settings('b')];

test.each<[string, Parameters<typeof chooseTailnet>, ReturnType<typeof chooseTailnet>]>([
  ['none at all', [undefined, undefined, false], { server: undefined, settings: undefined }],
  ['the first', [a, undefined, false], { server: at('a'), settings: a }],
  ['the same', [a, at('a'), true], { server: at('a'), settings: a }],
  ['another Secret', [settings('a', 't'), at('a'), true], { server: at('a', 't'), settings: settings('a', 't') }],
  ['given up, with devices', [undefined, at('a'), true], { server: at('a'), settings: undefined }],
  ['given up, without', [undefined, at('a'), false], { server: undefined, settings: undefined }],
  ['another one, with devices in the first', [b, at('a'), true], { server: at('a'), settings: undefined }],
  ['another one, without', [b, at('a'), false], { server: at('b'), settings: b }],
  ['records without a status of the Mesh', [a, undefined, true], { server: at('a'), settings: a }],
])('%s', (_, input, choice) => expect(chooseTailnet(...input)).toEqual(choice));

test('what is left out is the public service', () => {
  const { server } = chooseTailnet({ credentials: { authKeySecret: 'k' }, rules: [] }, undefined, false);
  expect(server).toMatchObject({
    controlURL: 'https://controlplane.tailscale.com',
    apiURL: 'https://api.tailscale.com',
  });
});
