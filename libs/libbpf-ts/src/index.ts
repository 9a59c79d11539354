export type * from './api.port.ts';
export { BpfError } from './bpf-error.ts';
export { loadObject, readObject } from './object.ts';
export { openMaps } from './open-maps.ts';
export {
  isBpffs,
  mountBpffs,
  openPinnedLink,
  openPinnedMap,
  openPinnedProgram,
  pinnedMapInfo,
  possibleCpus,
  unmountBpffs,
} from './pinned.ts';
export { attachProgram, type AttachOptions, detachFilter, filterProgramId } from './program.ts';
export { probeTcx } from './probe.ts';
