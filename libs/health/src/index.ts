export { createEchoDecoder, createEchoEncoder, ECHO_PORTS, EchoError, TOKEN_BYTES } from './echo.codec.ts';
export {
  areEqual,
  type Authenticate,
  decodeProbe,
  encodeProbe,
  MAC_BYTES,
  MAX_SITES,
  type MissedEchoes,
  NOTICE_BYTES,
  type Probe,
  PROBE_BYTES,
  ProbeError,
  type ProbeReply,
  type ProbeRequest,
  type ReachedSites,
} from './probe.codec.ts';
export { createOutstanding, isNewer, type Newest } from './replay.ts';
export { type Candidate, type Lost, reachedSites, reachesSite, selectMembers } from './selection.ts';
export { siteHash } from './site-hash.ts';
export {
  type Health,
  healthTable,
  NEW_PEER,
  nextHealth,
  PEER_STATES,
  type PeerState,
  type ProbeEvent,
  resumed,
} from './state.ts';
export { mtuAnswered, mtuLimit, mtuLost, raiseMtu, SMALLEST_MTU_BYTES, startMtuSearch } from './path-mtu.ts';
export {
  choosePath,
  heardPeer,
  nextPath,
  type Path,
  type PathChoice,
  pathTable,
  restPath,
  type Stance,
  stanceOf,
  startPath,
} from './path-choice.ts';
export {
  decodePathProbe,
  encodePathProbe,
  PAIR_NAME_BYTES,
  pairNameOf,
  type PathProbe,
  splitPathProbes,
  PATH_PROBE_MAGIC,
} from './path-probe.codec.ts';
