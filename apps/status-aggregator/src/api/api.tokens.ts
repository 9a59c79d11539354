/** Nest injection tokens of the edge. Explicit, because types are erased (`emitDecoratorMetadata` is off). */
export const AGENT_ACCESS = Symbol('AGENT_ACCESS');
export const VIEWER_ACCESS = Symbol('VIEWER_ACCESS');
export const PARSE_PUSH = Symbol('PARSE_PUSH');
export const REPORT_INTAKE = Symbol('REPORT_INTAKE');
export const NODE_REPORTS = Symbol('NODE_REPORTS');
export const FORWARDING_EXCHANGE = Symbol('FORWARDING_EXCHANGE');
export const PARSE_FORWARDING = Symbol('PARSE_FORWARDING');
export const VIEWER_REQUESTS = Symbol('VIEWER_REQUESTS');
export const SEND_JSON = Symbol('SEND_JSON');
export const READ_BODY = Symbol('READ_BODY');
export const SERIALIZED_VIEW = Symbol('SERIALIZED_VIEW');
export const STREAM_HUB = Symbol('STREAM_HUB');
export const ADMIT_STREAM = Symbol('ADMIT_STREAM');
export const LET_IN = Symbol('LET_IN');
export const EDGE_METRICS = Symbol('EDGE_METRICS');
export const EDGE_LOGGER = Symbol('EDGE_LOGGER');
