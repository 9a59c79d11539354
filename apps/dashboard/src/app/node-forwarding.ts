import { useCallback, useEffect, useRef, useState } from 'react';
import { fetchForwarding, type ForwardingAnswer } from './api.ts';
import { pause } from './pause.ts';

/** The server asks the node with its next report, which comes within 10 s. */
const AGAIN_MS = 1000;
const GIVE_UP_MS = 30_000;

export interface ForwardingState {
  /** What came last stays while it is asked again. */
  readonly answer?: ForwardingAnswer | undefined;
  readonly error?: string;
  readonly isAsking: boolean;
}

const SILENT = 'the node did not answer within 30 s; agents of earlier versions cannot';

/** An answer that was read later than the one that is known. @throws Error in words */
const ask = async (
  name: string,
  token: string,
  { known, signal }: { readonly known: string | undefined; readonly signal: AbortSignal },
): Promise<ForwardingAnswer> => {
  for (const end = performance.now() + GIVE_UP_MS; performance.now() < end; await pause(AGAIN_MS, signal)) {
    signal.throwIfAborted();
    const answer = await fetchForwarding(name, token, signal);
    if (answer && answer.forwarding.readTime !== known) return answer;
  }
  throw new Error(SILENT);
};

/** What a node forwards by, read at the node when somebody asks for it; another node, or another page, ends the asking. */
export const useNodeForwarding = (name: string, token: string): readonly [ForwardingState, () => void] => {
  const [state, setState] = useState<ForwardingState>({ isAsking: false });
  const asking = useRef<AbortController>(undefined);
  useEffect(() => {
    setState({ isAsking: false });
    return () => asking.current?.abort();
  }, [name, token]);
  const known = state.answer?.forwarding.readTime;
  const start = useCallback(() => {
    asking.current?.abort();
    const own = new AbortController();
    asking.current = own;
    setState(({ answer }) => ({ answer, isAsking: true }));
    ask(name, token, { known, signal: own.signal }).then(
      (answer) => own.signal.aborted || setState({ answer, isAsking: false }),
      (error: unknown) =>
        own.signal.aborted || setState(({ answer }) => ({ answer, error: (error as Error).message, isAsking: false })),
    );
  }, [name, token, known]);
  return [state, start];
};
