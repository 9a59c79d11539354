import { setTimeout as delay } from 'node:timers/promises';
import { metricsOn } from '../../apps/agent-state.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import type { LabLayout } from '../../layout/layout.ts';

/** Where an operator, and this test, sees that something was dropped or found wrong. */

const IS_REFUSAL =
  /^(unbounded_\w*(?:drop|reject|refus|forge|spoof|invalid)\w*(?:\{[^}]*\})?|unbounded_l2_port_frames_total\{[^}]*"drop_\w+"[^}]*\}) (\d+(?:\.\d+)?)/;

/** Counters of refused packets and messages that the node's programs export. */
const refusals = (node: string): Map<string, number> => {
  const lines = metricsOn(node).split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, name, value] = IS_REFUSAL.exec(line) ?? [];
      return name === undefined ? [] : [[`${node} ${name}`, Number(value)] as const];
    }),
  );
};

const total = (counters: ReadonlyMap<string, number>, before: ReadonlyMap<string, number>): Map<string, number> =>
  new Map(
    [...counters]
      .map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const)
      .filter(([, more]) => more > 0),
  );

const SEEN_MS = 15_000;

/** Does something, and waits until counters of these nodes have counted so many refusals. @throws Error */
export const expectDropped = async (
  nodes: readonly string[],
  atLeast: number,
  act: () => Promise<unknown>,
): Promise<string> => {
  const all = (): Map<string, number> => new Map(nodes.flatMap((node) => [...refusals(node)]));
  const before = all();
  await act();
  for (const end = performance.now() + SEEN_MS; ;) {
    const more = total(all(), before);
    const sum = [...more.values()].reduce((a, b) => a + b, 0);
    if (sum >= atLeast) return [...more].map(([name, count]) => `${name} +${count}`).join(', ');
    if (performance.now() > end)
      throw new Error(
        `${sum} of ${atLeast} packets were counted as refused: ${[...more.keys()].join(', ') || 'no counter rose'}`,
      );
    await delay(500);
  }
};

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** Waits until a condition of an object says something. @throws Error with what its conditions say instead */
export const expectCondition = async (layout: LabLayout, object: string, says: RegExp): Promise<string> => {
  for (const end = performance.now() + SEEN_MS; ;) {
    const { status } = JSON.parse(await kubectl(layout, ['get', ...object.split(' '), '-o', 'json'])) as {
      status?: { conditions?: Condition[] };
    };
    const lines = (status?.conditions ?? []).map(
      ({ type, status: is, reason, message }) => `${type}=${is} ${reason}: ${message}`,
    );
    const found = lines.find((line) => says.test(line));
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error(`no condition of ${object} matches ${says}: ${lines.join(' | ')}`);
    await delay(300);
  }
};
