import type { DynamicModule } from '@nestjs/common';

import type { HostPart } from './part.ts';

/** Nest injection token: the program's parts, in the order in which they start. */
export const HOST_PARTS = Symbol('HOST_PARTS');

// oxlint-disable-next-line typescript/no-extraneous-class -- Nest knows a module by a class
class ProgramModule {}

/**
 * The module of a program. Composition needs no decorators, so programs run from source under Node's type stripping;
 * `providers` may add whatever else Nest is to create and end (HTTP or WebSocket edges).
 */
export const hostModule = (
  createParts: () => readonly HostPart[],
  providers: NonNullable<DynamicModule['providers']> = [],
): DynamicModule => ({
  module: ProgramModule,
  providers: [...providers, { provide: HOST_PARTS, useFactory: createParts }],
});
