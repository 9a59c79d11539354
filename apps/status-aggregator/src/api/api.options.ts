import type { Socket } from 'node:net';

import type { Forwarding, Parsed, Push } from '@unbounded/status';
import type { Logger } from '@unbounded/telemetry';

import type { AgentAccess } from '../access/agent-access.ts';
import type { ViewerAccess } from '../access/viewer-access.ts';
import type { ForwardingExchange, NodeReports, ReportIntake, ViewStream } from '../intake.port.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import type { BodyLimits } from './report-body.ts';
import type { SendLimits } from './send-json.ts';
import type { StreamLimits } from './stream.limits.ts';

/** What is a report, of whatever came as JSON. */
export type ParsePush = (value: unknown) => Parsed<Push>;

/** What is an answer of what a node forwards by, of whatever came as JSON. */
export type ParseForwarding = (value: unknown) => Parsed<Forwarding>;

/** PEM. */
export interface ServedCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Told that a connection has proven who it is: from then on it does not count as a stranger's. */
export type LetIn = (connection: Socket) => void;

export interface ApiOptions {
  /** TCP port at each of the addresses; 0 takes a free one. */
  readonly port: number;
  /** Every address of the host when not set. */
  readonly addresses?: readonly string[];
  /** Asked at each connection; another object than before is served from then on. */
  readonly certificate: () => ServedCertificate;
  readonly agentAccess: AgentAccess;
  readonly viewerAccess: ViewerAccess;
  readonly parsePush: ParsePush;
  readonly intake: ReportIntake;
  readonly view: ViewStream;
  readonly reports: NodeReports;
  readonly forwarding: ForwardingExchange;
  readonly parseForwarding: ParseForwarding;
  /** JSON Schemas by name, of /openapi.json; routes refer to Push, NodeReport, Forwarding and ClusterView. */
  readonly schemas: Readonly<Record<string, object>>;
  /** Folder of the web page; not set, or not there: `/` says so. */
  readonly dashboardDir?: string | undefined;
  readonly logger: Logger;
  readonly metrics: EdgeMetrics;
  /** Connections that have proven nothing yet; beyond it the oldest of the address with the most is cut. */
  readonly mostStrangers?: number;
  readonly bodyLimits?: Partial<BodyLimits>;
  readonly sendLimits?: Partial<SendLimits>;
  readonly streamLimits?: Partial<StreamLimits>;
  /** The wall clock; for the end of tokens. */
  readonly now?: () => Date;
  /** Milliseconds, monotonic; for the pace of requests. */
  readonly elapsed?: () => number;
}
