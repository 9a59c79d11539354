import { type ConfigMap, ignoreGone, isConflict, type ResourceClient } from '@unbounded/kube';

import { ForeignObjectError, MADE_BY, MAKER, type ObjectPlace } from './tls-secret.ts';

const configMapOf = ({ namespace, name }: ObjectPlace, bundle: string): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, annotations: { [MADE_BY]: MAKER } },
  data: { 'ca.crt': bundle },
});

/** Whether it was written, or needs no writing: not when another replica was first. */
const attempt = async (client: ResourceClient<ConfigMap>, place: ObjectPlace, bundle: string): Promise<boolean> => {
  const { namespace, name } = place;
  try {
    const found = await client.get(name, { namespace }).catch(ignoreGone);
    if (!found) await client.create(configMapOf(place, bundle));
    else if (found.metadata.annotations?.[MADE_BY] !== MAKER) {
      throw new ForeignObjectError(`ConfigMap ${namespace}/${name} was not made by ${MAKER}, and is left as it is`);
    } else if (found.data?.['ca.crt'] !== bundle) {
      await client.update({ ...found, data: { ...found.data, 'ca.crt': bundle } });
    }
    return true;
  } catch (error) {
    if (!isConflict(error)) throw error;
    return false;
  }
};

/** Publishes the certificates that clients have to trust. */
export const publishBundle = async (
  client: ResourceClient<ConfigMap>,
  place: ObjectPlace,
  bundle: string,
): Promise<void> => {
  for (let left = 5; left > 0; left--) if (await attempt(client, place, bundle)) return;
  throw new Error(`ConfigMap ${place.namespace}/${place.name}: others write it without end`);
};
