/** Who waits to be let in, and from where. */
interface Member<T> {
  readonly item: T;
  address: string;
}

/**
 * Connections that have proven nothing yet: so many and no more. A new one is always taken; when there are too many, the
 * oldest of the address with the most has to go, so that strangers push out each other before anybody else.
 */
export class Crowd<T extends object> {
  readonly #most: number;
  readonly #members = new Map<T, Member<T>>();
  readonly #perAddress = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return this.#members.size;
  }

  /** Takes one in. Returns who has to go for it: the caller ends that one, and calls `leave`. */
  enter(item: T, address: string): T | undefined {
    const victim = this.#members.size >= this.#most ? this.oldestOf(this.#busiest()) : undefined;
    this.#members.set(item, { item, address });
    this.#count(address, 1);
    return victim;
  }

  /** It came from elsewhere, as a balancer has said. */
  rename(item: T, address: string): void {
    const member = this.#members.get(item);
    if (member === undefined) return;
    this.#count(member.address, -1);
    member.address = address;
    this.#count(address, 1);
  }

  /** It has gone, or has been let in. */
  leave(item: T): void {
    const member = this.#members.get(item);
    if (member === undefined) return;
    this.#members.delete(item);
    this.#count(member.address, -1);
  }

  oldestOf(address: string | undefined): T | undefined {
    for (const member of this.#members.values()) if (member.address === address) return member.item;
    return undefined;
  }

  #count(address: string, by: number): void {
    const count = (this.#perAddress.get(address) ?? 0) + by;
    if (count === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, count);
  }

  #busiest(): string | undefined {
    let found: string | undefined;
    let most = 0;
    for (const [address, count] of this.#perAddress) {
      if (count <= most) continue;
      found = address;
      most = count;
    }
    return found;
  }
}
