import { Controller, Get, Inject, Param, Query, Req, Res, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiParam, ApiQuery, ApiResponse } from '@nestjs/swagger';
import type { Request, Response } from 'express';

import type { NodeReports } from '../intake.port.ts';
import { NODE_REPORTS, SEND_JSON } from './api.tokens.ts';
import { ViewerGuard, ViewerName } from './guards.ts';
import { schemaRef } from './openapi.ts';
import { reportedJson, reportedNode } from './reported-node.ts';
import { MOST_NAMES, namesOf, reportedNodes } from './reported-nodes.ts';
import type { SendJson } from './send-json.ts';

const NODE_SCHEMA = {
  type: 'object',
  required: ['report', 'ageMs'],
  properties: { report: schemaRef('NodeReport'), ageMs: { type: 'number' } },
};

const NAME_SCHEMA = { type: 'string', maxLength: 253 };

/** What nodes reported last, for who may see the status of the cluster. */
@Controller('v1alpha1/nodes')
@UseGuards(ViewerGuard)
@ApiBearerAuth()
export class NodesController {
  readonly #reports: NodeReports;
  readonly #send: SendJson;

  constructor(@Inject(NODE_REPORTS) reports: NodeReports, @Inject(SEND_JSON) send: SendJson) {
    this.#reports = reports;
    this.#send = send;
  }

  @Get()
  @ApiOperation({ operationId: 'nodes', summary: 'What several nodes reported last, in one request.' })
  @ApiQuery({
    name: 'names',
    style: 'form',
    explode: false,
    schema: { type: 'array', items: NAME_SCHEMA, minItems: 1, maxItems: MOST_NAMES },
  })
  @ApiResponse({
    status: 200,
    description: 'The reports, of names that have reported.',
    schema: {
      type: 'object',
      required: ['nodes', 'left'],
      properties: {
        nodes: { type: 'object', additionalProperties: NODE_SCHEMA },
        left: {
          type: 'array',
          items: NAME_SCHEMA,
          description: 'To be asked for anew: with them the answer would be too large.',
        },
      },
    },
  })
  @ApiResponse({ status: 400, description: 'InvalidName' })
  @ApiResponse({ status: 429, description: 'TooManyRequests, TooManyBytesInFlight' })
  async nodes(
    @Query('names') names: unknown,
    @ViewerName() user: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.#send(request, response, { user, json: reportedNodes(this.#reports, namesOf(names)) });
  }

  @Get(':name')
  @ApiOperation({ operationId: 'node', summary: 'What a node reported last, and how old that is.' })
  @ApiParam({ name: 'name', schema: NAME_SCHEMA })
  @ApiResponse({ status: 200, description: 'The report.', schema: NODE_SCHEMA })
  @ApiResponse({ status: 404, description: 'NodeUnknown' })
  @ApiResponse({ status: 429, description: 'TooManyRequests, TooManyBytesInFlight' })
  async node(
    @Param('name') name: string,
    @ViewerName() user: string,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const json = Buffer.from(reportedJson(reportedNode(this.#reports, name)));
    await this.#send(request, response, { user, json });
  }
}
