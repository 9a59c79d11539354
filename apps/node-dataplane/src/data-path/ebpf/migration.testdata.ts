import { LAYOUT_VERSION } from '@unbounded/bpf-maps';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { HAS_TCX } from '../../connectivity/attached-programs.testdata.ts';
import type { AgentReport } from './migration-agent.scenario.ts';
import { type Layout, makeMigrationNetwork, type MigrationNetwork } from './migration-network.scenario.ts';

/**
 * Agents of two layouts of the maps follow each other on a node while pods send up to 4,000 packets a second: whoever comes takes
 * over from whoever was there, and nothing is lost. The tests go on where the one before ended.
 */

const FOLDERS: Readonly<Record<Layout, string>> = { now: `v${LAYOUT_VERSION}`, next: `v${LAYOUT_VERSION + 1}` };
const OTHER = { now: 'next', next: 'now' } as const;
const BPFFS = '/sys/fs/bpf/unbounded';
/** An agent starts in a second on a machine that has nothing else to do. */
const timeout = 240_000;

const linksOf = ({ attached }: AgentReport): number[] => Object.values(attached).map(({ link }) => link);
const programsOf = ({ attached }: AgentReport) => Object.values(attached).map(({ program }) => program);

/** A node on which agents of both layouts follow each other. */
interface Bed {
  readonly via: 'clsact' | undefined;
  network: MigrationNetwork;
  /** What the first agent left. */
  first: AgentReport;
}

/** What an agent of the layout leaves whose work is done: its own folder, the links that were there, and everything of others. */
const doneOf = ({ first }: Bed, layout: Layout) => ({
  problems: [],
  layouts: ['notes', FOLDERS[layout]],
  links: linksOf(first),
  others: first.others,
});
const seen = (report: AgentReport) => ({
  problems: report.problems,
  layouts: report.layouts,
  links: linksOf(report),
  others: report.others,
});
const run = ({ network }: Bed, layout: Layout) => seen(network.agent(layout));

const testVersions = (bed: Bed): void => {
  const isTcx = bed.via === undefined && HAS_TCX;
  test(
    'an upgrade and a rollback replace the programs in place, and leave the folder of their own layout',
    { timeout },
    () => {
      const [upgraded, rolledBack] = [bed.network.agent('next'), bed.network.agent('now')];
      expect([seen(upgraded), seen(rolledBack)]).toEqual([doneOf(bed, 'next'), doneOf(bed, 'now')]);
      expect(new Set([bed.first, upgraded, rolledBack].flatMap(programsOf)).size).toBe(6);
      expect(bed.first.others).toContain('somebody/thing');
      expect(linksOf(bed.first).every((link) => link > 0)).toBe(isTcx);
      if (isTcx) return;
      expect(
        bed.network.inNode('tc', 'filter', 'show', 'dev', 'vxlan0', 'ingress').match(/direct-action/g),
      ).toHaveLength(1);
      expect(
        bed.network.inNode('tc', 'filter', 'show', 'dev', 'unbounded0', 'egress').match(/direct-action/g),
      ).toHaveLength(1);
    },
  );

  test.each(['fail', 'missing'] as const)('programs stay until the groups are there (%s)', { timeout }, (groups) => {
    const before = bed.network.agent('now');
    const { attached, problems, layouts } = bed.network.agent('next', { groups });
    expect(attached).toEqual(before.attached);
    expect(layouts).toContain(FOLDERS.now);
    const kept = (device: string): unknown =>
      expect.stringMatching(`^ProgramNotReplaced: device ${device}: .*do not hold the whole plan`);
    expect([...problems].sort()).toEqual(groups === 'fail' ? [] : [kept('unbounded0'), kept('vxlan0')]);
    expect(run(bed, 'next')).toEqual(doneOf(bed, 'next'));
  });
};

const testLeftovers = (bed: Bed): void => {
  test('maps of the same names and sizes in the same folder, but of another layout, are not taken', { timeout }, () => {
    const before = bed.network.agent('now');
    const folder = `${BPFFS}/${FOLDERS.now}`;
    bed.network.inNode('sh', '-c', `rmdir ${folder}/layout-* && mkdir ${folder}/layout-0badcafe`);
    const after = bed.network.agent('now');
    expect(seen(after)).toEqual(doneOf(bed, 'now'));
    expect(Object.keys(after.mapIds)).toEqual(Object.keys(before.mapIds));
    for (const [name, id] of Object.entries(before.mapIds)) expect(after.mapIds[name], name).not.toBe(id);
    expect(bed.network.agent('now').mapIds).toEqual(after.mapIds);
  });

  test('maps of an agent that neither marked its folder nor had all of them go on being used', { timeout }, () => {
    const before = bed.network.agent('now');
    const folder = `${BPFFS}/${FOLDERS.now}`;
    bed.network.inNode(
      'sh',
      '-c',
      `rmdir ${folder}/layout-* && rm -r ${folder}/programs ${folder}/maps/unbounded_locals`,
    );
    const after = bed.network.agent('now');
    expect(seen(after)).toEqual(doneOf(bed, 'now'));
    const changed = Object.keys(after.mapIds).filter((name) => after.mapIds[name] !== before.mapIds[name]);
    expect(changed).toEqual(['unbounded_locals']);
  });

  test('maps of other sizes in the same folder make way', { timeout }, () => {
    bed.network.agent('next', { pinFolder: `${BPFFS}/${FOLDERS.now}` });
    expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
  });

  test('programs that were not built with the agent are refused, and those that are there stay', { timeout }, () => {
    expect(() => bed.network.agent('next', {}, 'now')).toThrow('is of another layout than this agent');
    expect(() => bed.network.agent('now', {}, 'next')).toThrow('is of another layout than this agent');
    expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
  });

  test('what is left of a folder, and what nobody knows, makes way', { timeout }, () => {
    const folder = `${BPFFS}/${FOLDERS.next}`;
    const pin = `bpftool map pin pinned ${BPFFS}/${FOLDERS.now}/maps/unbounded_config`;
    bed.network.inNode('sh', '-c', `mkdir -p ${folder}/maps && ${pin} ${folder}/maps/unbounded_config`);
    expect(run(bed, 'next')).toEqual(doneOf(bed, 'next'));
    expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
    bed.network.inNode('mkdir', '-p', `${folder}/links/vxlan0`, `${folder}/more/still`, `${BPFFS}/v999/links`);
    bed.network.inNode('sh', '-c', `${pin} ${folder}/links/unbounded0`);
    expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
  });
};

const testKills = (bed: Bed, every: number): void => {
  const which = every === 1 ? 'any' : `one in ${every}`;
  test(
    `an agent that is killed before ${which} of its steps leaves a node that forwards, and either version goes on from there`,
    { timeout: 900_000 },
    () => {
      expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
      const { steps } = bed.network.agent('next');
      expect(run(bed, 'now')).toEqual(doneOf(bed, 'now'));
      expect(steps).toBeGreaterThan(15);
      const kills: string[] = [];
      let from: Layout = 'now';
      for (let step = 0; step < steps; step += every) {
        kills.push(bed.network.crash(OTHER[from], step));
        // The agent goes on before every other step, and for the other kind of attachment before the rest; else it goes back.
        if ((step % 2 === 0) === (bed.via === undefined)) from = OTHER[from];
        expect(run(bed, from), kills.at(-1)).toEqual(doneOf(bed, from));
      }
      console.log(kills.join('\n'));
    },
  );

  test('no packet was lost in all of that', { timeout }, async () => {
    const { sent, lost } = await bed.network.lost();
    console.log(`${sent} packets each way in each of two flows`);
    expect(lost).toEqual([]);
    expect(sent).toBeGreaterThan(10_000);
  });
};

/**
 * The tests, for one way in which programs are attached; each has a spec of its own, since one takes minutes.
 * @param options killEvery: before so many steps of an agent it is killed once; each time takes seconds
 */
export const testMigration = (via: 'clsact' | undefined, { killEvery = 1, leftovers = true } = {}): void => {
  const bed = { via } as Bed; // the rest before the first test
  beforeAll(async () => {
    bed.network = await makeMigrationNetwork(via);
    bed.first = bed.network.agent('now');
  }, timeout);
  afterAll(async () => {
    await bed.network[Symbol.asyncDispose]();
  });
  testVersions(bed);
  if (leftovers) testLeftovers(bed);
  testKills(bed, killEvery);
};
