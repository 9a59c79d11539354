import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parsePodNetworks } from './index.ts';

describe('the annotation of a pod', () => {
  test('names Networks, with interfaces in their order where none is said', () => {
    expect(parsePodNetworks('lan, office@lan0')).toEqual([
      { network: 'lan', interface: 'net1' },
      { network: 'office', interface: 'lan0' },
    ]);
    expect(parsePodNetworks('')).toEqual([]);
  });

  test('says MAC, addresses and segment in a JSON list', () => {
    const entry = {
      network: 'lan',
      interface: 'lan0',
      mac: '02:00:00:00:00:01',
      addresses: ['192.0.2.7'],
      segment: 'web',
    };
    expect(parsePodNetworks(JSON.stringify([entry, { network: 'other' }]))).toEqual([
      entry,
      { network: 'other', interface: 'net2' },
    ]);
  });

  test.each<[text: string, says: string]>([
    ['lan@a@b', 'value is "lan@a@b": must be NETWORK or NETWORK@INTERFACE'],
    ['lan,', '[1].network is "": must be the name of a Network'],
    ['Lan', '[0].network is "Lan": must be the name of a Network'],
    [
      'lan@eth0',
      '[0].interface is "eth0": must be at most 15 lower-case letters, digits and dashes, and neither eth0 nor lo',
    ],
    ['lan@averyverylongname', '[0].interface is "averyverylongname"'],
    ['lan@a,office@a', 'interface is "a": is there twice'],
    ['[', 'value is "[": is no JSON list'],
    ['[7]', '[0] is 7: must be an object with network'],
    ['[{"network":"lan","ip":"192.0.2.7"}]', '[0].ip is "192.0.2.7": must be one of network, interface, mac'],
    [
      '[{"network":"lan","mac":"01:00:5e:00:00:01"}]',
      '[0].mac is "01:00:5e:00:00:01": must be the MAC address of a station',
    ],
    ['[{"network":"lan","addresses":[]}]', '[0].addresses is []: must be a list of 1 to 16 addresses'],
    ['[{"network":"lan","addresses":"192.0.2.7"}]', '[0].addresses is "192.0.2.7": must be a list'],
    ['[{"network":"lan","segment":"A B"}]', '[0].segment is "A B": must be the name of a segment'],
    [Array.from({ length: 17 }, () => 'lan').join(), 'names 17 networks: at most 16'],
    ['x'.repeat(9000), 'must be at most 8192 characters'],
  ])('%j is refused with field, value and what would be right', (text, says) => {
    expect(() => parsePodNetworks(text)).toThrow(says);
    expect(() => parsePodNetworks(text)).toThrow('annotation net.unbounded-cloud.io/networks');
  });

  test('of whatever text is refused with a short message, or read', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json().map((json) => `[${json}]`),
        ),
        (text) => {
          try {
            for (const { network, interface: device } of parsePodNetworks(text))
              expect([network.length > 0, device.length <= 15]).toEqual([true, true]);
          } catch (error) {
            expect(error).toBeInstanceOf(RangeError);
            expect((error as Error).message.length).toBeLessThan(400);
          }
        },
      ),
    );
  });
});
