/** A Map of so many entries and no more: beyond it the one that was used least recently is dropped. */
export class RecentlyUsed<V> {
  readonly #most: number;
  readonly #entries = new Map<string, V>(); // in the order of use

  constructor(mostEntries: number) {
    this.#most = mostEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#most) return;
      this.#entries.delete(oldest);
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
