import { Controller, HttpCode, Inject, Post, Req, UseGuards, UseInterceptors } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { Request } from 'express';

import type { ReportIntake } from '../intake.port.ts';
import type { ParsePush } from './api.options.ts';
import { EDGE_METRICS, PARSE_PUSH, READ_BODY, REPORT_INTAKE } from './api.tokens.ts';
import type { EdgeMetrics } from './edge-metrics.ts';
import { AgentGuard, BoundNode } from './guards.ts';
import { schemaRef } from './openapi.ts';
import { createNodePace } from './node-pace.ts';
import { Refusal } from './refusal.ts';
import type { ReadBody } from './report-body.ts';
import { TellWants, WANTS_HEADER } from './tell-wants.ts';

/** Where the agents of nodes report. */
@Controller('v1alpha1/reports')
@UseGuards(AgentGuard)
@ApiBearerAuth()
export class ReportsController {
  readonly #intake: ReportIntake;
  readonly #read: ReadBody;
  readonly #parse: ParsePush;
  readonly #metrics: EdgeMetrics;
  readonly #pace = createNodePace();

  constructor(
    @Inject(REPORT_INTAKE) intake: ReportIntake,
    @Inject(READ_BODY) read: ReadBody,
    @Inject(PARSE_PUSH) parse: ParsePush,
    @Inject(EDGE_METRICS) metrics: EdgeMetrics,
  ) {
    this.#intake = intake;
    this.#read = read;
    this.#parse = parse;
    this.#metrics = metrics;
  }

  @Post()
  @HttpCode(204)
  @UseInterceptors(TellWants)
  @ApiOperation({ operationId: 'report', summary: 'Takes the report of the node that the token is bound to.' })
  @ApiBody({ schema: schemaRef('Push') })
  @ApiResponse({
    status: 204,
    description: 'Taken.',
    headers: {
      [WANTS_HEADER]: {
        description: 'forwarding: somebody waits for what the node forwards by.',
        schema: { type: 'string' },
      },
    },
  })
  @ApiResponse({ status: 409, description: 'ResyncRequired: the next report has to be a whole one.' })
  async report(@BoundNode() node: string, @Req() request: Request): Promise<void> {
    await this.#pace.run(node, () => this.#take(node, request));
  }

  async #take(node: string, request: Request): Promise<void> {
    const parsed = this.#parse(await this.#read(request));
    if (!parsed.ok) {
      this.#metrics.pushed('invalid');
      throw new Refusal({ status: 400, reason: 'InvalidReport', message: parsed.error });
    }
    const accepted = await this.#intake.accept(node, parsed.value).catch((error: unknown) => {
      this.#metrics.pushed('failed');
      throw error;
    });
    if (typeof accepted === 'object') {
      this.#metrics.pushed('invalid');
      throw new Refusal({ status: 400, reason: 'InvalidReport', message: accepted.error });
    }
    this.#metrics.pushed(accepted);
    if (accepted === 'accepted') return;
    const message = 'the report that this one is a difference from is not known here: send a whole one';
    throw new Refusal({ status: 409, reason: 'ResyncRequired', message });
  }
}
