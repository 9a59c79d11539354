import { describe, expect, it } from 'vitest';
import { acceptPush, type HeldReport, parsePush, type Push } from './push.ts';
import { connectivityOf, reportOf } from '../report.testdata.ts';

const document = (report = reportOf()): Push['report'] => JSON.parse(JSON.stringify(report)) as Push['report'];
const full = (over: Partial<Push> = {}): Push => ({ epoch: 'e1', revision: 1, report: document(), ...over });
const delta = (patch: object, over: Partial<Push> = {}): Push => ({
  ...{ epoch: 'e1', revision: 2, base: 1, patch: patch as Push['patch'] },
  ...over,
});
const accepted = (held: HeldReport | undefined, push: Push): HeldReport => {
  const result = acceptPush(held, push);
  if (!result.ok || result.value === 'resync') throw new Error(JSON.stringify(result));
  return result.value;
};

describe('a push', () => {
  it('with the whole report is taken, whatever was held', () => {
    const other = accepted(accepted(undefined, full()), full({ epoch: 'e2', revision: 1 }));
    expect(other).toMatchObject({ epoch: 'e2', revision: 1, report: { agentVersion: '0.1.0' } });
  });

  it('with a delta changes what it names alone', () => {
    const held = accepted(
      undefined,
      full({ report: document(reportOf({ connectivity: connectivityOf({ peers: ['a', 'b'] }) })) }),
    );
    const next = accepted(
      held,
      delta({ connectivity: { peers: { a: { health: { ipv4: { state: 'Unhealthy' } } } } } }),
    );
    expect(next.report.connectivity?.peers['a']?.health.ipv4?.state).toBe('Unhealthy');
    expect(next.report.connectivity?.peers['b']?.health.ipv4?.state).toBe('Healthy');
    expect(held.report.connectivity?.peers['a']?.health.ipv4?.state).toBe('Healthy');
  });

  it('that leaves the groups as they are leaves them the same object, and reads the rest anew', () => {
    const groups = { g: { site: 's2', family: 'IPv4' as const, members: { a: { tier: 0, isActive: true } } } };
    const held = accepted(
      undefined,
      full({ report: document(reportOf({ connectivity: connectivityOf({ groups }) })) }),
    );
    const next = accepted(held, delta({ agentVersion: '0.2.0', connectivity: { dataplane: 'netlink' } }));
    expect(next.report.connectivity?.groups).toBe(held.report.connectivity?.groups);
    expect(next.report).toMatchObject({ agentVersion: '0.2.0', connectivity: { dataplane: 'netlink' } });
    const last = accepted(
      next,
      delta({ connectivity: { groups: { g: { members: { a: { isActive: false } } } } } }, { base: 2, revision: 3 }),
    );
    expect(last.report.connectivity?.groups['g']?.members['a']).toEqual({ tier: 0, isActive: false });
  });

  it.each([
    ['of which nothing is held', undefined, delta({})],
    ['of another process of the agent', full(), delta({}, { epoch: 'e2' })],
    ['from another revision', full(), delta({}, { base: 7, revision: 8 })],
  ])('with a delta %s asks for the whole report', (_, before, push) => {
    const held = before && accepted(undefined, before);
    expect(acceptPush(held, push)).toEqual({ ok: true, value: 'resync' });
  });

  it('keeps members of a later version, so that its deltas find them', () => {
    const later = { ...document()!, tailnet: { devices: { p1: { state: 'Running' } } } };
    const held = accepted(undefined, full({ report: later }));
    const next = accepted(held, delta({ tailnet: { devices: { p1: { state: 'Stopped' } } } }));
    expect(next.document['tailnet']).toEqual({ devices: { p1: { state: 'Stopped' } } });
  });

  it('with a word of a later version reads Unknown, and nothing good', () => {
    const held = accepted(
      undefined,
      full({ report: document(reportOf({ connectivity: connectivityOf({ peers: ['a'] }) })) }),
    );
    const next = accepted(
      held,
      delta({ connectivity: { peers: { a: { protocol: 'QUIC', health: { ipv4: { state: 'Splendid' } } } } } }),
    );
    expect(next.report.connectivity?.peers['a']).toMatchObject({
      protocol: 'Unknown',
      health: { ipv4: { state: 'Unknown' } },
    });
  });

  it.each([
    [{ agentVersion: 7 }, 'agentVersion: 7: '],
    [{ problems: Array.from({ length: 201 }, () => ({ reason: 'R', message: 'm' })) }, 'problems: '],
    [{ connectivity: { site: '' } }, 'connectivity.site: "": '],
    [
      { connectivity: { peers: { a: { health: { ipv4: { state: 'Healthy', rttMs: -1 } } } } } },
      'connectivity.peers.a.health.ipv4.rttMs: -1: ',
    ],
    [{ drops: { spoofed: 1.5 } }, 'drops.spoofed: 1.5: '],
    [{ connectivity: null, problems: null }, 'problems: '],
  ])('that makes the report invalid (%j) is refused, with field and value', (patch, error) => {
    const held = accepted(
      undefined,
      full({ report: document(reportOf({ connectivity: connectivityOf({ peers: ['a'] }) })) }),
    );
    const result = acceptPush(held, delta(patch));
    expect(result).toMatchObject({ ok: false });
    expect(!result.ok && result.error.startsWith(error), JSON.stringify(result)).toBe(true);
  });

  it('of half a million bad members is refused by the first thing that is wrong', () => {
    const named = (most: number, entry: unknown) =>
      Object.fromEntries(Array.from({ length: most }, (_, at) => [at.toString(36), entry]));
    const report = (groups: number, members: number) => ({
      ...document()!,
      connectivity: { ...connectivityOf(), groups: named(groups, { family: 'IPv4', members: named(members, {}) }) },
    });
    const errorOf = (body: object): string => {
      const result = acceptPush(undefined, full({ report: body as Push['report'] }));
      return result.ok ? '' : result.error;
    };
    expect(errorOf(report(2000, 256))).toMatch(/^connectivity\.groups: .*: must have at most 65536 members together$/);
    expect(errorOf(report(256, 256))).toMatch(/^connectivity\.groups\.0\.members\.0\.tier: undefined: /);
  });

  it('cannot let the report grow by deltas without end', () => {
    let held = accepted(undefined, full());
    const grow = (revision: number) =>
      acceptPush(held, delta({ [`more${revision}`]: 'x'.repeat(1024 * 1024) }, { base: revision - 1, revision }));
    for (const revision of [2, 3, 4]) {
      const result = grow(revision);
      if (!result.ok || result.value === 'resync') throw new Error(`revision ${revision}`);
      held = result.value;
    }
    expect(grow(5)).toMatchObject({
      ok: false,
      error: expect.stringMatching(/^the report: \d+ characters: must have at most 4194304$/) as string,
    });
  });

  it('may change a large report as often as it likes', () => {
    let held = accepted(undefined, full({ report: { ...document()!, note: 'x'.repeat(3 * 1024 * 1024) } }));
    for (let revision = 2; revision < 40; revision++)
      held = accepted(held, delta({ other: 'y'.repeat(100 * 1024) }, { base: revision - 1, revision }));
    expect(held.revision).toBe(39);
  });

  it.each([
    [null, 'the body: null: '],
    [[], 'the body: []: '],
    [{ revision: 1, report: {} }, 'epoch: '],
    [{ epoch: 'e', revision: 0, report: {} }, 'revision: 0: '],
    [{ epoch: 'e', revision: 1 }, 'the body: '],
    [{ epoch: 'e', revision: 2, base: 1 }, 'the body: '],
    [{ epoch: 'e', revision: 2, report: {}, base: 1, patch: {} }, 'the body: '],
    [{ epoch: 'e', revision: 2, base: 1, patch: [] }, 'patch: []: '],
    [{ epoch: 'e'.repeat(65), revision: 1, report: {} }, 'epoch: '],
  ])('of %j is refused', (input, error) => {
    const result = parsePush(input);
    expect(result).toMatchObject({ ok: false });
    expect(!result.ok && result.error.startsWith(error), JSON.stringify(result)).toBe(true);
  });
});
