import type {
  Attachment,
  BpfLink,
  BpfProgram,
  Direction,
  LinkInfo,
  ProgramInfo,
  TestRun,
  TestRunResult,
} from './api.port.ts';
import { attempt, BpfError } from './bpf-error.ts';
import { addon, type Handle } from './native.ts';

const handles = new WeakMap<BpfProgram | BpfLink, Handle>();

const handleOf = (object: BpfProgram | BpfLink): Handle => {
  const handle = handles.get(object);
  if (!handle) throw new TypeError('the program or link must come from this library');
  return handle;
};

const programInfo = (handle: Handle): ProgramInfo => {
  const { id, name, type, tag, mapIds, verifiedInstructions } = addon().handleInfo(handle);
  return { id, name, type, tag, mapIds, verifiedInstructions };
};

export const liveProgram = (handle: Handle): BpfProgram => {
  const program: BpfProgram = {
    get info() {
      return programInfo(handle);
    },
    testRun: (input: TestRun): TestRunResult =>
      attempt('program', () => addon().testRun(handle, input.data ?? null, input.context ?? null, input.repeat ?? 1)),
    pin: (path) => attempt(`pin program at ${path}`, () => addon().pinHandle(handle, path)),
    close: () => addon().closeHandle(handle),
    [Symbol.dispose]: () => addon().closeHandle(handle),
  };
  handles.set(program, handle);
  return program;
};

/** BPF_TCX_INGRESS and BPF_TCX_EGRESS of linux/bpf.h. */
const DIRECTIONS = new Map<number, Direction>([
  [46, 'ingress'],
  [47, 'egress'],
]);
const LINK_TYPE_TCX = 11;

/** ifindex 0 means that the device is gone: the link still exists and attaches nothing. */
const linkInfo = (handle: Handle): LinkInfo => {
  const { id, type, programId, ifindex = 0, attachType } = addon().handleInfo(handle);
  const direction = DIRECTIONS.get(attachType);
  return type === LINK_TYPE_TCX && direction ? { id, type, programId, ifindex, direction } : { id, type, programId };
};

export const liveLink = (handle: Handle): BpfLink => {
  const link: BpfLink = {
    get info() {
      return linkInfo(handle);
    },
    update: (program) => attempt('link', () => addon().updateLink(handle, handleOf(program))),
    pin: (path) => attempt(`pin link at ${path}`, () => addon().pinHandle(handle, path)),
    detach: () => attempt('link', () => addon().detachLink(handle)),
    close: () => addon().closeHandle(handle),
    [Symbol.dispose]: () => addon().closeHandle(handle),
  };
  handles.set(link, handle);
  return link;
};

export interface AttachOptions {
  readonly ifindex: number;
  readonly direction: Direction;
  /** Of a tcx link: it then outlives this process. A clsact filter always does. */
  readonly pinPath?: string;
  /** Default: tcx where the kernel has it, else clsact. */
  readonly via?: 'tcx' | 'clsact';
  /** Of the clsact filter; default 1 each. An existing filter there is replaced. */
  readonly handle?: number;
  readonly priority?: number;
  /** The namespace of the device; default the process's own. */
  readonly netnsFd?: number;
}

const attachTcx = (program: BpfProgram, options: AttachOptions): BpfLink => {
  const what = `attach to ${options.direction} of link ${options.ifindex}`;
  const egress = options.direction === 'egress';
  const link = liveLink(
    attempt(what, () => addon().attachTcx(handleOf(program), options.ifindex, egress, options.netnsFd ?? -1)),
  );
  try {
    if (options.pinPath !== undefined) link.pin(options.pinPath);
  } catch (error) {
    link.close();
    throw error;
  }
  return link;
};

/** EINVAL: the kernel does not know the attach type; a wrong ifindex is ENODEV. */
const knowsNoTcx = (error: unknown): boolean => error instanceof BpfError && error.code === 'EINVAL';

/** Attaches a tc program to a device. @throws BpfError ENODEV, EEXIST (pin path), EPERM, … */
export const attachProgram = (program: BpfProgram, options: AttachOptions): Attachment => {
  if (options.via !== 'clsact') {
    try {
      return { via: 'tcx', link: attachTcx(program, options) };
    } catch (error) {
      if (options.via === 'tcx' || !knowsNoTcx(error)) throw error;
    }
  }
  const { ifindex, handle = 1, priority = 1 } = options;
  attempt(`attach to ${options.direction} of link ${ifindex}`, () =>
    addon().attachClsact(
      handleOf(program),
      ifindex,
      options.direction === 'egress',
      handle,
      priority,
      options.netnsFd ?? -1,
    ),
  );
  return { via: 'clsact', handle, priority };
};

/** Removes a clsact filter; the qdisc stays, others may use it. False when there was none. */
export const detachFilter = (options: Omit<AttachOptions, 'pinPath' | 'via'>): boolean => {
  const { ifindex, direction, handle = 1, priority = 1, netnsFd = -1 } = options;
  return attempt(`detach from ${direction} of link ${ifindex}`, () =>
    addon().detachClsact(ifindex, direction === 'egress', handle, priority, netnsFd),
  );
};

/** The id of the program that a clsact filter runs; undefined when there is no such filter. @throws BpfError ENODEV, EPERM, … */
export const filterProgramId = (options: Omit<AttachOptions, 'pinPath' | 'via'>): number | undefined => {
  const { ifindex, direction, handle = 1, priority = 1, netnsFd = -1 } = options;
  const id = attempt(`query ${direction} of link ${ifindex}`, () =>
    addon().queryClsact(ifindex, direction === 'egress', handle, priority, netnsFd),
  );
  return id === 0 ? undefined : id;
};
