import { syncBuiltinESMExports } from 'node:module';

/**
 * Functions of a module of Node replaced for whoever imports it, also where it is loaded already: until disposed of.
 * @param module its default export
 */
export const replaceInBuiltin = <T extends object>(module: T, replaced: Partial<T>): Disposable => {
  const names = Object.keys(replaced) as (keyof T)[];
  const before = Object.fromEntries(names.map((name) => [name, module[name]])) as Partial<T>;
  const set = (functions: Partial<T>): void => {
    Object.assign(module, functions);
    syncBuiltinESMExports();
  };
  set(replaced);
  return { [Symbol.dispose]: () => set(before) };
};
