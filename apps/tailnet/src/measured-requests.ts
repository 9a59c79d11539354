import type { AgentMetrics, CniMethod } from './agent-metrics.ts';
import { NoDeviceError } from './admission.ts';
import { type CniRequests, InvalidRequestError } from './cni-requests.ts';

/** Requests for containers, counted by how they end. */

const failureOf = (error: unknown): string => {
  if (error instanceof InvalidRequestError) return 'InvalidRequest';
  return error instanceof NoDeviceError ? 'NoDevice' : 'Unavailable';
};

export const measuredRequests = (requests: CniRequests, metrics: Pick<AgentMetrics, 'answered'>): CniRequests => {
  const begin = (method: CniMethod) => {
    const beganMs = performance.now();
    return (result: string) => metrics.answered(method, result, (performance.now() - beganMs) / 1000);
  };
  const around = <T>(method: CniMethod, ask: () => T, resultOf: (answer: T) => string = () => 'Success'): T => {
    const end = begin(method);
    try {
      const answer = ask();
      end(resultOf(answer));
      return answer;
    } catch (error) {
      end(failureOf(error));
      throw error;
    }
  };
  return {
    async add(request, signal) {
      const end = begin('Add');
      try {
        const answer = await requests.add(request, signal);
        end('Success');
        return answer;
      } catch (error) {
        end(failureOf(error));
        throw error;
      }
    },
    del: (request) => around('Del', () => requests.del(request)),
    check: (request) =>
      around(
        'Check',
        () => requests.check(request),
        ({ healthy }) => (healthy ? 'Success' : 'Unhealthy'),
      ),
  };
};
