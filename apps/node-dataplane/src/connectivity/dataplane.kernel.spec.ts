import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { agentCommand } from '@unbounded/config/node-command';
import { beforeAll, describe, expect, test } from 'vitest';
import { HAS_TCX } from './attached-programs.testdata.ts';
import type { Report } from './dataplane.scenario.ts';

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

const run = (...argv: readonly string[]): Report => {
  const scenario = join(import.meta.dirname, 'dataplane.scenario.ts');
  const unshare = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand, scenario];
  const printed = execFileSync('unshare', [...unshare, ...argv], { encoding: 'utf8', maxBuffer: 64 << 20 });
  return JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
};

/** By clsact: as on a kernel before 6.6. */
describe.each([
  { how: 'as the kernel can', argv: [] },
  { how: 'by clsact', argv: ['clsact'] },
])('programs attached $how', ({ argv }) => {
  let report: Report;
  beforeAll(() => {
    report = run(...argv);
  });

  describe('a plan that is applied', () => {
    test('is whole after the first pass', () => {
      expect(report.first).toEqual([]);
      expect(report.applied).toContain('vxlan0 vxlan');
      expect(report.applied).toContain('100.66.0.0/16 dev unbounded0');
      expect(report.applied).toContain('table inet unbounded');
      expect(report.applied).toContain('\nprogram true');
      expect(report.applied).toContain('source check true');
    });

    test('is not written again', () => {
      expect(report.secondWrote).toEqual([]);
    });

    test('is restored by one pass, whatever was changed', () => {
      expect(report.unrepaired).toEqual({});
    });
  });

  test('a route and a map entry that are taken away by hand show as wanted and not present, until they are repaired', () => {
    const { before, taken, after } = report.forwarding;
    expect([before, after]).toEqual([[], []]);
    expect(taken).toEqual([
      expect.stringMatching(/^routes 254 100\.66\.0\.0\/16 Missing: \[\[\{"device":"unbounded0",.*\],null\]$/),
      expect.stringMatching(/^unbounded_endpoints_v4 100\.65\.31\.0\/24 Missing: \[\[\{"device":"vxlan0",.*\],null\]$/),
    ]);
  });

  test('the gateway of the pods keeps its MAC as pods come and go', () => {
    expect(new Set(report.bridgeMacs)).toEqual(new Set(['02:64:41:1e:01:ff']));
  });

  test('a successor finds entries and programs in place before it has applied anything', () => {
    expect(report.taken).toEqual({ entries: true, link: true, program: true });
  });

  test('links of others under our names are left alone and told of', () => {
    expect(report.foreign.linksSame).toBe(true);
    expect(report.foreign.problems).toEqual(
      expect.arrayContaining([
        expect.stringContaining('vxlan0 exists that is not ours'),
        expect.stringContaining('cbr0 exists that is not ours'),
      ]),
    );
  });

  test('cleaning up leaves what was there before, and what belongs to others', () => {
    expect(report.cleaned).toBe(report.before);
    expect(report.foreignSurvives).toBe(true);
  });

  test('the other data path finds no filter of ours where a device stays: its maps would be those of today for ever', () => {
    const own = argv.length > 0 || !HAS_TCX ? ['unbounded0', 'vxlan0'] : [];
    expect(report.filters).toEqual({ before: own, after: [] });
  });

  describe('an unencrypted tunnel is up only while forged packets are kept out', () => {
    test('when a node boots it comes up behind its source check', () => {
      expect(report.closed.atBoot).toEqual({ upBefore: false, upAfter: true });
    });

    test('the source check knows every peer and member of a group from its first moment, since the other data path may be in force', () => {
      const [atOnce, afterwards] = report.closed.checkedBy;
      expect(atOnce).toEqual(afterwards);
      expect(Math.min(atOnce.entries, atOnce.groups)).toBeGreaterThan(0);
    });

    test('it goes down while its source check cannot be attached, with a problem, and comes up with it', () => {
      expect(report.closed.unattached).toMatchObject({ up: false, upAgain: true });
      expect(report.closed.unattached.problems).toContain('ProgramNotAttached');
    });

    test('it goes down also when its settings cannot be written', () => {
      expect(report.closed.unattached.upUnsettled).toBe(false);
    });

    test('a table that is there, but not as planned, keeps it as it is: up, or down', () => {
      expect(report.closed.outdated).toEqual({ up: true, cameUp: false, contained: false });
    });

    test('without a table it goes down, and comes up with it', () => {
      expect(report.closed.missing).toMatchObject({ up: false, upAgain: true });
      expect(report.closed.missing.problems).toContain('FirewallFailed');
    });
  });

  describe('pods that run', () => {
    test('are attached again when their bridge was deleted or their port detached', () => {
      expect(report.pods.atFirst).toBe(true);
      const attached = { reasons: [], isReached: true };
      expect(report.pods.steps).toMatchObject({
        'the bridge was deleted': attached,
        'the port was detached': attached,
        'manageCniPlugin is true again': attached,
      });
    });

    test('keep their bridge while they are its ports, also under manageCniPlugin: false', () => {
      expect(report.pods.steps['manageCniPlugin is false']).toEqual({ reasons: ['BridgeInUse'], isReached: true });
      expect(report.pods.unused).toEqual({ reasons: [], isBridgeGone: true });
    });

    test('are reported while they cannot be attached, and no more when they are gone', () => {
      const detached = { reasons: ['PodsDetached'], isReached: false };
      expect(report.pods.steps).toMatchObject({
        'the port is at another bridge': detached,
        'the interface is gone': detached,
        'the pod is gone': { reasons: [] },
      });
    });
  });
});
