/** What hangs at a link for traffic control: only what attaching BPF needs (clsact and its bpf filters). */

export interface Qdisc {
  readonly link: number;
  readonly kind: string;
  readonly handle: number;
  readonly parent: number;
}

/** A BPF classifier at the ingress or egress of a clsact qdisc. */
export interface BpfFilter {
  readonly link: number;
  readonly direction: 'ingress' | 'egress';
  readonly priority: number;
  /** ETH_P_* in host order; 3 is ETH_P_ALL. */
  readonly protocol: number;
  readonly handle: number;
  readonly name?: string;
  readonly programId?: number;
  readonly programTag?: string;
  readonly directAction: boolean;
}
