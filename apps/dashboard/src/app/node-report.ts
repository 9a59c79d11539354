import { useEffect, useState } from 'react';
import type { NodeView } from '../view/types.ts';
import { fetchNode, type NodeAnswer } from './api.ts';

const AGAIN_MS = 10_000;

export interface NodeState {
  readonly answer?: NodeAnswer | undefined;
  /** Of the last attempt; what came before stays. */
  readonly error?: string;
  readonly isLoading: boolean;
}

/** The report of a node: again every 10 s, and when the view says that something of the node is another. */
export const useNodeReport = (name: string, token: string, node: NodeView | undefined): NodeState => {
  const [state, setState] = useState<NodeState>({ isLoading: true });
  useEffect(() => {
    let isWanted = true;
    const load = async (): Promise<void> => {
      try {
        const answer = await fetchNode(name, token);
        if (isWanted) setState({ answer, isLoading: false });
      } catch (error) {
        if (isWanted) setState(({ answer }) => ({ answer, error: (error as Error).message, isLoading: false }));
      }
    };
    void load();
    const timer = setInterval(() => void load(), AGAIN_MS);
    return () => {
      isWanted = false;
      clearInterval(timer);
    };
  }, [name, token, node]);
  return state;
};
