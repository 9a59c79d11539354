import { Controller, Get, Inject, Param, Req, Res, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiResponse } from '@nestjs/swagger';
import type { Request, Response } from 'express';

import { SILENT_AFTER_MS } from '../forwarding/forwarding.limits.ts';
import type { ForwardingExchange, NodeReports } from '../intake.port.ts';
import { FORWARDING_EXCHANGE, NODE_REPORTS, SEND_JSON } from './api.tokens.ts';
import { ViewerGuard, ViewerName } from './guards.ts';
import { schemaRef } from './openapi.ts';
import { Refusal } from './refusal.ts';
import { reportedNode } from './reported-node.ts';
import type { SendJson } from './send-json.ts';

const MS_PER_S = 1000;

const notReporting = (name: string, ageMs: number): Refusal => {
  const message = `node ${name} last reported ${Math.round(ageMs / MS_PER_S)} s ago: it is asked when it reports`;
  return new Refusal({ status: 503, reason: 'NodeNotReporting', message, retryAfterS: 10 });
};

const REFUSALS = {
  tooMany: { status: 429, reason: 'TooManyNodesRequested', message: 'too many nodes are being asked', retryAfterS: 10 },
  away: {
    status: 503,
    reason: 'RedisAway',
    message: 'Redis is away, and the node does not report to this replica',
    retryAfterS: 5,
  },
} as const;

/** What a node forwards by, asked of its agent. */
@Controller('v1alpha1/nodes')
@UseGuards(ViewerGuard)
@ApiBearerAuth()
export class ForwardingController {
  readonly #exchange: ForwardingExchange;
  readonly #reports: NodeReports;
  readonly #send: SendJson;

  constructor(
    @Inject(FORWARDING_EXCHANGE) exchange: ForwardingExchange,
    @Inject(NODE_REPORTS) reports: NodeReports,
    @Inject(SEND_JSON) send: SendJson,
  ) {
    this.#exchange = exchange;
    this.#reports = reports;
    this.#send = send;
  }

  /**
   * Never waits for the node: an answer may come to another replica, and whoever waits would hold a connection for as long as a node takes. The
   * node is asked as long as somebody comes back, so that the same request also refreshes.
   */
  @Get(':name/forwarding')
  @ApiOperation({
    operationId: 'forwarding',
    summary: 'Map entries and routes of a node, as planned and as they are. The node is asked with its next report.',
  })
  @ApiParam({ name: 'name', schema: { type: 'string', maxLength: 253 } })
  @ApiResponse({
    status: 200,
    description: 'What the node answered last, a minute ago at most; it is asked again meanwhile.',
    schema: {
      type: 'object',
      required: ['forwarding', 'ageMs'],
      properties: { forwarding: schemaRef('Forwarding'), ageMs: { type: 'number' } },
    },
  })
  @ApiResponse({ status: 202, description: 'Requested: the node is asked. Ask again after Retry-After.' })
  @ApiResponse({ status: 404, description: 'NodeUnknown' })
  @ApiResponse({ status: 429, description: 'TooManyNodesRequested, TooManyRequests, TooManyBytesInFlight' })
  @ApiResponse({ status: 503, description: 'NodeNotReporting, RedisAway' })
  async forwarding(
    @Param('name') name: string,
    @ViewerName() user: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const { ageMs } = reportedNode(this.#reports, name);
    if (ageMs > SILENT_AFTER_MS) throw notReporting(name, ageMs);
    const wanted = await this.#exchange.want(name);
    if (typeof wanted === 'string') throw new Refusal(REFUSALS[wanted]);
    const { answer } = wanted;
    if (!answer) {
      const message = `node ${name} is asked with its next report, which comes within 10 s`;
      response.status(202).setHeader('Retry-After', '1').json({ reason: 'Requested', message });
      return;
    }
    const head = Buffer.from(`{"ageMs":${Math.round(answer.ageMs)},"forwarding":`);
    await this.#send(request, response, { user, json: Buffer.concat([head, answer.json, Buffer.from('}')]) });
  }
}
