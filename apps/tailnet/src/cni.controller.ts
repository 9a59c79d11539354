import { type Metadata, type ServerUnaryCall, status } from '@grpc/grpc-js';
import { Controller, Inject } from '@nestjs/common';
import { GrpcMethod, RpcException } from '@nestjs/microservices';
import {
  type AddRequest,
  type AddResponse,
  type CheckResponse,
  type ContainerRequest,
  TAILNET_SERVICE,
} from '@unbounded/tailnet-cni';
import { NoDeviceError } from './admission.ts';
import { type CniRequests, InvalidRequestError } from './cni-requests.ts';

export const CNI_REQUESTS = Symbol('CniRequests');

const codeOf = (error: unknown): number => {
  if (error instanceof InvalidRequestError) return status.INVALID_ARGUMENT;
  return error instanceof NoDeviceError ? status.FAILED_PRECONDITION : status.UNAVAILABLE;
};

/** Ends when the caller has gone away. */
const signalOf = (call: ServerUnaryCall<unknown, unknown>): AbortSignal => {
  const ending = new AbortController();
  call.on('cancelled', () => ending.abort());
  return ending.signal;
};

@Controller()
export class CniController {
  readonly #requests: CniRequests;

  constructor(@Inject(CNI_REQUESTS) service: CniRequests) {
    this.#requests = service;
  }

  @GrpcMethod(TAILNET_SERVICE, 'Add')
  async add(request: AddRequest, _: Metadata, call: ServerUnaryCall<unknown, unknown>): Promise<AddResponse> {
    try {
      return await this.#requests.add(request, signalOf(call));
    } catch (error) {
      throw new RpcException({ code: codeOf(error), message: (error as Error).message });
    }
  }

  @GrpcMethod(TAILNET_SERVICE, 'Del')
  del(request: ContainerRequest): object {
    this.#requests.del(request);
    return {};
  }

  @GrpcMethod(TAILNET_SERVICE, 'Check')
  check(request: ContainerRequest): CheckResponse {
    return this.#requests.check(request);
  }
}
