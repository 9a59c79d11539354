import { Controller, Get, Inject, Req, Res, UseGuards } from '@nestjs/common';
import { ApiBearerAuth, ApiOperation, ApiResponse } from '@nestjs/swagger';
import type { Request, Response } from 'express';

import { SEND_JSON, SERIALIZED_VIEW } from './api.tokens.ts';
import { etagOf, isUnchanged } from './etag.ts';
import { ViewerGuard, ViewerName } from './guards.ts';
import { schemaRef } from './openapi.ts';
import { Refusal } from './refusal.ts';
import type { SendJson } from './send-json.ts';
import type { Serializer } from './serialized-view.ts';

/** For who may see the status of the cluster. */
@Controller('v1alpha1')
@UseGuards(ViewerGuard)
@ApiBearerAuth()
export class ViewController {
  readonly #serializer: Serializer;
  readonly #send: SendJson;

  constructor(@Inject(SERIALIZED_VIEW) serializer: Serializer, @Inject(SEND_JSON) send: SendJson) {
    this.#serializer = serializer;
    this.#send = send;
  }

  @Get('view')
  @ApiOperation({ operationId: 'view', summary: 'The view of the cluster, with the position to stream from.' })
  @ApiResponse({
    status: 200,
    description: 'The view.',
    schema: {
      type: 'object',
      required: ['position', 'view'],
      properties: {
        position: { type: 'string' },
        view: schemaRef('ClusterView'),
        notices: {
          type: 'array',
          items: { type: 'string' },
          description:
            'What is to be known of this replica: that its view stands still, for instance. Absent: nothing.',
        },
      },
    },
  })
  @ApiResponse({ status: 304, description: 'The position is still that of If-None-Match.' })
  @ApiResponse({ status: 429, description: 'TooManyRequests, TooManyBytesInFlight' })
  @ApiResponse({ status: 503, description: 'NotYetComposed' })
  async view(@ViewerName() user: string, @Req() request: Request, @Res() response: Response): Promise<void> {
    const view = this.#serializer.view();
    if (view === undefined) {
      const message = 'the view has not been composed yet';
      throw new Refusal({ status: 503, reason: 'NotYetComposed', message, retryAfterS: 1 });
    }
    const etag = etagOf(view.version);
    response.setHeader('ETag', etag);
    if (isUnchanged(request.headers['if-none-match'], etag)) {
      response.status(304).end();
      return;
    }
    await this.#send(request, response, { user, json: view.json, gzipped: () => view.gzip() });
  }
}
