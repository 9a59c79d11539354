export {
  type Authenticate,
  decodeProbe,
  encodeProbe,
  MAC_BYTES,
  MAX_PROBE_BYTES,
  MAX_SITES,
  type Probe,
  PROBE_BYTES,
  ProbeError,
  type ProbeFault,
  type ProbeReply,
  type ProbeRequest,
  type ReachedSites,
} from './probe.codec.ts';
export { createOutstanding, isNewer, type Newest, type Outstanding } from './replay.ts';
export { type Candidate, isUsable, reachedSites, reachesSite, selectMembers } from './selection.ts';
export { siteHash } from './site-hash.ts';
export {
  type Health,
  HEALTH_TABLE,
  healthTable,
  NEW_PEER,
  nextHealth,
  PEER_STATES,
  type PeerState,
  PROBE_EVENTS,
  type ProbeEvent,
  resumed,
} from './state.ts';
export {
  BASE_MTU_BYTES,
  mtuAnswered,
  mtuLimit,
  mtuLost,
  MTU_PROBE_LOSSES,
  type MtuSearch,
  raiseMtu,
  startMtuSearch,
} from './path-mtu.ts';
