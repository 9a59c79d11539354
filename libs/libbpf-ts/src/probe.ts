import type { BpfProgram, Probe } from './api.port.ts';
import { BpfError } from './bpf-error.ts';
import { attachProgram } from './program.ts';

/** An index no device has. */
const NOWHERE = 0x7fff_ffff;

/**
 * Does the kernel attach by tcx? Asked without attaching anything: a kernel that knows tcx looks for the device first
 * (ENODEV), one that does not refuses the attach type (EINVAL). Needs a loaded tc program, and the right to attach.
 */
export const probeTcx = (program: BpfProgram): Probe => {
  try {
    attachProgram(program, { ifindex: NOWHERE, direction: 'egress', via: 'tcx' });
    return { supported: 'unknown', reason: `link ${NOWHERE} exists` };
  } catch (error) {
    if (!(error instanceof BpfError)) throw error;
    if (error.code === 'ENODEV') return { supported: 'yes' };
    return error.code === 'EINVAL'
      ? { supported: 'no', since: '6.6' }
      : { supported: 'unknown', reason: error.message };
  }
};
