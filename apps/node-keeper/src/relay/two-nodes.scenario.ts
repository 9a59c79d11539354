import { mkdirSync } from 'node:fs';
import { type AppProcess, startApp, until } from '@unbounded/testing';
import { type OwnKey, RelayNode, type StandIn, unitOf } from './relay.scenario.ts';

/** Two nodes whose keepers run the relay's proxies, and the real relay between them. */

/** A relay on a loopback port, 0 for any, and the port that it has. @param flags besides */
export const startRelayOn = async (
  port: number,
  ...flags: readonly string[]
): Promise<{ readonly app: AppProcess; readonly port: number }> => {
  const app = startApp('relay', ['--addr', `127.0.0.1:${port}`, '--auth', 'require', ...flags]);
  const relaying = () => app.log.find(({ msg }) => msg === 'relaying');
  return { app, port: (await until('the relay relays', relaying, 30_000))['port'] as number };
};

export class TwoNodes {
  readonly a = new RelayNode('a');
  readonly b = new RelayNode('b');
  readonly keyA: OwnKey = this.a.newKey();
  readonly keyB: OwnKey = this.b.newKey();
  relay!: AppProcess;
  relayPort!: number;
  wireGuardA!: StandIn;
  wireGuardB!: StandIn;
  #packets = 0;

  /** Both are connected, and each has a proxy for the other. */
  static async open(): Promise<TwoNodes> {
    mkdirSync('/etc/wireguard', { recursive: true, mode: 0o700 });
    const made = new TwoNodes();
    const { a, b } = made;
    [made.wireGuardA, made.wireGuardB] = [await a.wireGuard(), await b.wireGuard()];
    await made.startRelay(0);
    made.#writeUnits();
    for (const node of [a, b]) node.startKeeper();
    await made.#untilConnected();
    return made;
  }

  /** For another test on the same nodes, of which keepers, proxies and the relay live. */
  async restore(): Promise<void> {
    this.#writeUnits();
    await this.#untilConnected();
  }

  #writeUnits(): void {
    const { a, b, keyA, keyB } = this;
    a.write(unitOf(this.relayPort, { own: keyA, peers: [[keyB, this.wireGuardA]] }));
    b.write(unitOf(this.relayPort, { own: keyB, peers: [[keyA, this.wireGuardB]] }));
  }

  async #untilConnected(): Promise<void> {
    for (const node of [this.a, this.b])
      await until('connected to the relay alone, with one proxy', () => {
        const { relays = [], proxies = [] } = node.state ?? {};
        return proxies.length === 1 && relays.length === 1 && relays[0]!.name === 'relay' && relays[0]!.connected;
      });
  }

  async startRelay(port: number): Promise<void> {
    ({ app: this.relay, port: this.relayPort } = await startRelayOn(port));
  }

  /** Packets go both ways: each end sees the other at the port of its proxy. */
  async expectPackets(): Promise<void> {
    const { a, b, keyA, keyB, wireGuardA, wireGuardB } = this;
    for (const [from, to, out, back] of [
      [wireGuardA, wireGuardB, a.portOf(keyA, keyB)!, b.portOf(keyB, keyA)!],
      [wireGuardB, wireGuardA, b.portOf(keyB, keyA)!, a.portOf(keyA, keyB)!],
    ] as const) {
      const text = `\u0004 packet ${++this.#packets}`;
      await until('the packet comes', () => {
        from.send(text, out);
        return to.got.some((got) => got.text === text && got.from === back);
      });
    }
  }

  async close(): Promise<void> {
    for (const node of [this.a, this.b]) await node.close();
    await this.relay.stop('SIGKILL');
  }
}
