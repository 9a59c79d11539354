import { MESH_NAME, type Mesh, type TailnetDevice } from '@unbounded/crds';
import { chooseTailnet, type TailnetChoice, type TailnetServer } from '@unbounded/tailnet';

import { CredentialsMissingError } from './credentials.ts';
import type { TailnetAccess } from './tailnet-access.ts';
import { TailnetDoubtedError, type TailnetHealth } from './tailnet-health.ts';

/** Which tailnet the program works on now, by what the caches hold. */
export interface TailnetState {
  choice(): TailnetChoice;
  /** Of the tailnet; undefined: there is none. */
  access(): TailnetAccess | undefined;
  /** @throws CredentialsMissingError when it is the record of another tailnet; TailnetDoubtedError when it may be */
  accessTo(record: TailnetDevice): TailnetAccess;
}

export interface TailnetStateOptions {
  readonly mesh: () => Mesh | undefined;
  readonly records: () => readonly TailnetDevice[];
  readonly open: (server: TailnetServer) => TailnetAccess;
  readonly health: Pick<TailnetHealth, 'doubt'>;
}

export const createTailnetState = ({ mesh, records, open, health }: TailnetStateOptions): TailnetState => {
  /** A Mesh that is deleted takes its status along. */
  let last: TailnetServer | undefined;
  const choice = (): TailnetChoice => {
    const current = mesh();
    const made = chooseTailnet(current?.spec.tailnet, current?.status?.tailnet ?? last, records().length > 0);
    last = made.server;
    return made;
  };
  return {
    choice,
    access() {
      const { server } = choice();
      return server && open(server);
    },
    accessTo({ spec: { controlURL } }) {
      const { server } = choice();
      if (server?.controlURL === controlURL) {
        const access = open(server); // of another server than before there is no doubt yet
        if (health.doubt !== undefined) throw new TailnetDoubtedError(health.doubt);
        return access;
      }
      const remedy = `write ${controlURL} with its credentials into spec.tailnet of the Mesh "${MESH_NAME}" again`;
      throw new CredentialsMissingError(`the record is of ${controlURL}, whose credentials nothing says: ${remedy}`);
    },
  };
};
