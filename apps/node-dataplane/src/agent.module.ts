import { type DynamicModule, Module } from '@nestjs/common';
import { HOST_PARTS, type HostServices } from '@unbounded/host';
import { type AgentConfig, createAgentPart } from './agent.part.ts';

@Module({})
export class AgentModule {
  static create(config: AgentConfig, services: HostServices): DynamicModule {
    return {
      module: AgentModule,
      providers: [{ provide: HOST_PARTS, useFactory: () => [createAgentPart(config, services)] }],
    };
  }
}
