import { setTimeout as delay } from 'node:timers/promises';
import { createTailnetCni, type TailnetCni } from '@unbounded/tailnet-cni';
import { createLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CatchUp, createCatchUp } from './catch-up.ts';
import { createPodChoice } from './pod-choice.ts';
import {
  annotated,
  type AgentTrouble,
  NoDevice,
  podOf,
  socketPath,
  startTailnetAgent,
} from './tailnet-agent.testdata.ts';

let agent: Awaited<ReturnType<typeof startTailnetAgent>>;
let trouble: AgentTrouble;
let client: TailnetCni;
let asked: string[];
let logged: string[];
let catchUp: CatchUp;
beforeEach(async () => {
  const path = socketPath();
  trouble = {};
  agent = await startTailnetAgent(path, trouble);
  client = createTailnetCni(path);
  [asked, logged] = [[], []];
  const log = (_: object, text: string): void => void logged.push(text);
  catchUp = createCatchUp({
    agent: client,
    choice: createPodChoice(() => 'OnRequest'),
    annotationsOf: async ({ name }) => {
      asked.push(name);
      return annotated(name.startsWith('plain') ? undefined : 'true');
    },
    logger: { ...createLogger({ name: 'test', level: 'error' }), info: log, warn: log } as never,
  });
});
afterEach(() => {
  catchUp.stop();
  client[Symbol.dispose]();
  agent.stop();
});

const pods = (...names: readonly string[]) => names.map(podOf);
const added = (): string[] => agent.calls.filter((call) => call.startsWith('add')).toSorted();

test('running pods that may join get their devices, and of others nothing is asked', async () => {
  agent.known.add('known');
  catchUp.look(pods('web', 'known', 'plain'));
  await until('it is added', () => agent.known.has('web') && asked.length === 3);
  // A look passes over what is under way, as these may be until their answers are here: as a section's passes, one follows another.
  await until('both are looked at again', () => {
    catchUp.look(pods('web', 'known', 'plain'));
    return ['web', 'known'].every((name) => agent.calls.filter((call) => call === `check ${name}`).length > 1);
  });
  expect(added()).toEqual(['add web']);
  expect([asked.toSorted(), agent.calls.filter((call) => call.endsWith('plain'))]).toEqual([
    ['known', 'plain', 'web'],
    [],
  ]);
});

test('at most four at once, each once, and one that hangs holds up no other', async () => {
  let most = 0;
  let open = 0;
  const gate = Promise.withResolvers<void>();
  trouble.add = async ({ containerId }) => {
    most = Math.max(most, ++open);
    if (containerId === 'slow') await gate.promise;
    else await delay(5);
    open -= 1;
    return {};
  };
  const names = ['slow', ...Array.from({ length: 12 }, (_, at) => `p${at}`)];
  catchUp.look(pods(...names));
  catchUp.look(pods(...names));
  await until('all others are added', () => agent.known.size === 12);
  catchUp.look(pods('slow'));
  gate.resolve();
  await until('that one, too', () => agent.known.has('slow'));
  expect([added().filter((call) => call === 'add slow'), most <= 4]).toEqual([['add slow'], true]);
});

test('a pod that is to be no device is asked about again when the settings are others', async () => {
  trouble.add = async () => Promise.reject(new NoDevice('no rule selects namespace shop'));
  catchUp.look(pods('web'));
  await until('it is refused', () => logged.length === 1);
  catchUp.look(pods('web'));
  expect(added()).toEqual(['add web']);
  trouble.add = async () => ({});
  catchUp.reconsider();
  catchUp.look(pods('web'));
  await until('it is added', () => agent.known.has('web'));
});

test('what cannot be done now is tried with the next look, and its reason is logged once', async () => {
  trouble.add = async () => Promise.reject(new Error('the keeper does not run'));
  await until('both were tried twice', () => {
    catchUp.look(pods('a', 'b'));
    return ['a', 'b'].every((name) => added().filter((call) => call === `add ${name}`).length > 1);
  });
  expect(logged).toEqual(['a running pod gets no device for now']);
});

test('nothing more is asked for a container that goes', async () => {
  trouble.add = () => new Promise(() => undefined);
  catchUp.look(pods('web'));
  await until('it is asked for', () => added().length === 1);
  catchUp.leave('web');
  await delay(30);
  expect(logged).toEqual([]);
  delete trouble.add;
  await until('a later look asks again', () => {
    catchUp.look(pods('web'));
    return agent.known.has('web');
  });
});
