import type { DynamicModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';

import type { ApiOptions, LetIn } from './api.options.ts';
import * as tokens from './api.tokens.ts';
import { ForwardingAnswersController } from './forwarding-answers.controller.ts';
import { ForwardingController } from './forwarding.controller.ts';
import { NodesController } from './nodes.controller.ts';
import { RefusalFilter } from './refusal.filter.ts';
import { createBodyReader } from './report-body.ts';
import { ReportsController } from './reports.controller.ts';
import { createRequestPace, VIEWER_PACE } from './request-pace.ts';
import { createJsonSender } from './send-json.ts';
import { createSerializer } from './serialized-view.ts';
import { createStreamAdmission } from './stream-admission.ts';
import { StreamHub } from './stream-hub.ts';
import { StreamGateway } from './stream.gateway.ts';
import { STREAM_LIMITS } from './stream.limits.ts';
import { ViewController } from './view.controller.ts';

// oxlint-disable-next-line typescript/no-extraneous-class -- Nest knows a module by a class
class ApiModule {}

const value = (provide: symbol, useValue: unknown) => ({ provide, useValue });

/** Controllers, guards and the gateway of the edge, with what they are given. */
export const apiModule = (options: ApiOptions, letIn: LetIn): DynamicModule => {
  const { view, viewerAccess: access, metrics, logger, now = () => new Date() } = options;
  const limits = { ...STREAM_LIMITS, ...options.streamLimits };
  const serializer = createSerializer(view);
  const admission = createStreamAdmission({ access, letIn, ...limits });
  return {
    module: ApiModule,
    controllers: [
      ReportsController,
      ForwardingAnswersController,
      ViewController,
      NodesController,
      ForwardingController,
    ],
    providers: [
      StreamGateway,
      { provide: APP_FILTER, useClass: RefusalFilter },
      value(tokens.AGENT_ACCESS, options.agentAccess),
      value(tokens.VIEWER_ACCESS, access),
      value(tokens.PARSE_PUSH, options.parsePush),
      value(tokens.REPORT_INTAKE, options.intake),
      value(tokens.NODE_REPORTS, options.reports),
      value(tokens.FORWARDING_EXCHANGE, options.forwarding),
      value(tokens.PARSE_FORWARDING, options.parseForwarding),
      value(tokens.VIEWER_REQUESTS, createRequestPace({ ...VIEWER_PACE, elapsed: options.elapsed })),
      value(tokens.SEND_JSON, createJsonSender(options.sendLimits)),
      value(tokens.READ_BODY, createBodyReader(options.bodyLimits)),
      value(tokens.SERIALIZED_VIEW, serializer),
      value(tokens.ADMIT_STREAM, admission),
      value(tokens.STREAM_HUB, new StreamHub({ view, serializer, admission, access, limits, metrics, logger, now })),
      value(tokens.LET_IN, letIn),
      value(tokens.EDGE_METRICS, metrics),
      value(tokens.EDGE_LOGGER, logger),
    ],
  };
};
