import { type CanActivate, createParamDecorator, type ExecutionContext, Inject, Injectable } from '@nestjs/common';
import type { Request } from 'express';

import type { AgentAccess } from '../access/agent-access.ts';
import { bearerOf } from '../access/bearer.ts';
import type { ViewerAccess } from '../access/viewer-access.ts';
import type { LetIn } from './api.options.ts';
import { AGENT_ACCESS, LET_IN, VIEWER_ACCESS, VIEWER_REQUESTS } from './api.tokens.ts';
import { authorized } from './authorized.ts';
import type { RequestPace } from './request-pace.ts';

const nodes = new WeakMap<Request, string>();
const viewers = new WeakMap<Request, string>();

/** Lets agents in: their token says for which node they report. */
@Injectable()
export class AgentGuard implements CanActivate {
  readonly #access: AgentAccess;
  readonly #letIn: LetIn;

  constructor(@Inject(AGENT_ACCESS) access: AgentAccess, @Inject(LET_IN) letIn: LetIn) {
    this.#access = access;
    this.#letIn = letIn;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    nodes.set(request, await authorized(bearerOf(request.headers.authorization), this.#access));
    this.#letIn(request.socket);
    return true;
  }
}

/** The node that the token of a request behind {@link AgentGuard} is bound to. */
export const boundNode = (request: Request): string | undefined => nodes.get(request);

/** Parameter of a handler: {@link boundNode}. */
export const BoundNode = createParamDecorator((_: unknown, context: ExecutionContext) =>
  boundNode(context.switchToHttp().getRequest<Request>()),
);

/** Lets in who may see the status of the cluster, at a user's pace: the user counts, and not the token. */
@Injectable()
export class ViewerGuard implements CanActivate {
  readonly #access: ViewerAccess;
  readonly #letIn: LetIn;
  readonly #pace: RequestPace;

  constructor(
    @Inject(VIEWER_ACCESS) access: ViewerAccess,
    @Inject(LET_IN) letIn: LetIn,
    @Inject(VIEWER_REQUESTS) pace: RequestPace,
  ) {
    this.#access = access;
    this.#letIn = letIn;
    this.#pace = pace;
  }

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const { username } = await authorized(bearerOf(request.headers.authorization), this.#access);
    this.#letIn(request.socket);
    this.#pace.take(username);
    viewers.set(request, username);
    return true;
  }
}

/** Parameter of a handler behind {@link ViewerGuard}: the user. */
export const ViewerName = createParamDecorator((_: unknown, context: ExecutionContext) =>
  viewers.get(context.switchToHttp().getRequest<Request>()),
);
