import { Controller, HttpCode, Inject, Post, Req, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { Request } from 'express';

import type { ForwardingExchange } from '../intake.port.ts';
import type { ParseForwarding } from './api.options.ts';
import { FORWARDING_EXCHANGE, PARSE_FORWARDING, READ_BODY } from './api.tokens.ts';
import { AgentGuard, BoundNode } from './guards.ts';
import { createNodePace } from './node-pace.ts';
import { schemaRef } from './openapi.ts';
import { Refusal } from './refusal.ts';
import type { ReadBody } from './report-body.ts';

/** An agent that is asked once in 10 s, or with each of its pushes, may be late with one. */
const PACE = { burst: 2, perSecond: 1 };

/** Where agents answer what their nodes forward by. */
@Controller('v1alpha1/reports/forwarding')
@UseGuards(AgentGuard)
@ApiBearerAuth()
export class ForwardingAnswersController {
  readonly #exchange: ForwardingExchange;
  readonly #read: ReadBody;
  readonly #parse: ParseForwarding;
  readonly #pace = createNodePace({ pace: PACE });

  constructor(
    @Inject(FORWARDING_EXCHANGE) exchange: ForwardingExchange,
    @Inject(READ_BODY) read: ReadBody,
    @Inject(PARSE_FORWARDING) parse: ParseForwarding,
  ) {
    this.#exchange = exchange;
    this.#read = read;
    this.#parse = parse;
  }

  @Post()
  @HttpCode(204)
  @ApiOperation({
    operationId: 'answerForwarding',
    summary: 'Takes what the node that the token is bound to forwards by, when somebody has asked for it.',
  })
  @ApiBody({ schema: schemaRef('Forwarding') })
  @ApiResponse({ status: 204, description: 'Taken.' })
  @ApiResponse({ status: 409, description: 'NotRequested: nobody waits for it.' })
  async answer(@BoundNode() node: string, @Req() request: Request): Promise<void> {
    await this.#pace.run(node, () => this.#take(node, request));
  }

  async #take(node: string, request: Request): Promise<void> {
    // Before the body: what nobody asked for is not read.
    if (!(await this.#exchange.isWanted(node)))
      throw new Refusal({
        status: 409,
        reason: 'NotRequested',
        message: 'nobody has asked what this node forwards by',
      });
    const parsed = this.#parse(await this.#read(request));
    if (!parsed.ok) throw new Refusal({ status: 400, reason: 'InvalidForwarding', message: parsed.error });
    await this.#exchange.answer(node, parsed.value);
  }
}
