import type { PodAttachment } from './pods.ts';

/** What a section has to do with pods that come and go, besides what every pod needs. */

/**
 * Declared with the section, before it is open: so there is a decision about each pod also while the section is not open, cannot be
 * opened, or has stopped.
 */
export interface HookType {
  /** Hooks run one after the other, lower ones first; on DEL in the reverse order. */
  readonly order: number;
  /** Then the hook has failed for this pod. Others wait for it no longer, and no other pod does at all. */
  readonly timeoutMs: number;
  /**
   * ADD of a pod that concerns the section while the section is not open: refused, and the runtime tries again; or attached without
   * the section, for sections whose absence lets nothing through that they should have decided about.
   */
  readonly unavailable: 'refuse' | 'pass';
  /** Not set: every pod. Where it throws, the decision `unavailable` holds for that pod. */
  readonly concerns?: (pod: PodAttachment) => boolean;
  /**
   * Of a pod that concerns the section: `own`: the section makes a network of its own of the pod's port on the node, which is no port
   * of the pod bridge and has no source guard. Not set: `bridge`.
   */
  readonly port?: (pod: PodAttachment) => 'bridge' | 'own';
}

export type Annotations = Readonly<Record<string, string>>;

/** A pod at ADD. */
export interface AddedPod extends PodAttachment {
  /**
   * As the runtime passes them (POD_ANNOTATIONS of config.ts); else from the API server, in one request for each ADD.
   * @throws Error: it does not answer, or has another pod of that name
   */
  annotations(): Promise<Annotations>;
}

/** An interface that a section has put into the pod. */
export interface SettledInterface {
  readonly name: string;
  /** With prefix lengths: `192.0.2.7/24`. */
  readonly addresses: readonly string[];
}

/** What a hook adds to the result of ADD (CNI specification 1.1.0, section "ADD Success"). */
export interface ResultAddition {
  readonly interfaces?: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
  /** `interface` is the index among the interfaces above. */
  readonly ips?: readonly { readonly address: string; readonly gateway?: string; readonly interface?: number }[];
  readonly routes?: readonly { readonly dst: string; readonly gw?: string }[];
  /**
   * Not in the result: the CNI plugin gives these their addresses and sets them up before ADD succeeds, since it may enter the pod's
   * network namespace, and the agent may not. At most 16 of all sections, with at most 16 addresses each.
   */
  readonly settle?: readonly SettledInterface[];
}

/** Of an open section. */
export interface HookHandlers {
  /**
   * ADD, while the pod's port is being made: what `add` asks others for can be asked for already. It changes nothing, and `add` follows only
   * if there is a port.
   */
  begin?(pod: AddedPod): void;
  /** ADD: an error refuses the pod for now; the runtime tries again. An effect that comes after the time is undone by `remove`. */
  add?(pod: AddedPod, signal: AbortSignal): Promise<ResultAddition | void>;
  /** DEL, which may come twice, without ADD, or after an ADD that failed: an error is logged, and the pod goes. */
  remove?(pod: PodAttachment, signal: AbortSignal): Promise<void>;
  /** CHECK: what is wrong, in words. */
  check?(pod: PodAttachment, signal: AbortSignal): Promise<string | undefined>;
  /** STATUS: why no pod of the section could start now, in words. */
  status?(): string | undefined;
}
