import { Fragment } from 'react';
import { hrefOf } from '../view/address.ts';
import { count } from '../view/format.ts';
import type { Problem } from '../view/types.ts';

export const NodeLink = ({ name }: { readonly name: string }) => <a href={hrefOf(['nodes', name])}>{name}</a>;
export const SiteLink = ({ name }: { readonly name: string }) => <a href={hrefOf(['sites', name])}>{name}</a>;

export const ObjectLink = ({ kind, name }: Pick<Problem, 'kind' | 'name'>) => {
  if (kind === 'Node') return <NodeLink name={name} />;
  if (kind === 'Site') return <SiteLink name={name} />;
  return <a href={hrefOf([kind === 'EgressAddress' ? 'egress' : 'pools'], { q: name })}>{name}</a>;
};

const MOST_NAMES = 5;

/** Names as links; of many the first ones, and how many there are. */
export const Names = ({ names, of }: { readonly names: readonly string[]; readonly of: typeof NodeLink }) => {
  const Link = of;
  const shown = names.slice(0, MOST_NAMES);
  if (names.length === 0) return <>none</>;
  return (
    <>
      {shown.map((name, index) => (
        <Fragment key={name}>
          {index > 0 && ', '}
          <Link name={name} />
        </Fragment>
      ))}
      {names.length > shown.length && (
        <span title={names.join(', ')}>
          {' '}
          ({shown.length} of {count(names.length)})
        </span>
      )}
    </>
  );
};
