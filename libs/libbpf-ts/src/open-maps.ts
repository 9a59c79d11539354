import type { BpfMap, BpfObject, Codec } from './api.port.ts';

/** A map of an object by its name there. */
export interface MapLayout<K, V> {
  readonly name: string;
  readonly key: Codec<K>;
  readonly value: Codec<V>;
}

/** The same names; each has the key and the value of its layout. */
type OpenMaps<Layouts> = {
  readonly [Name in keyof Layouts]: Layouts[Name] extends MapLayout<infer K, infer V> ? BpfMap<K, V> : never;
};

/** Maps of an object all at once, for a table of layouts that several programs share. @throws TypeError as `object.map` */
export const openMaps = <Layouts extends Readonly<Record<string, MapLayout<unknown, unknown>>>>(
  object: BpfObject,
  layouts: Layouts,
): OpenMaps<Layouts> =>
  Object.fromEntries(
    Object.entries(layouts).map(([name, layout]) => [name, object.map(layout.name, layout.key, layout.value)]),
  ) as OpenMaps<Layouts>;
