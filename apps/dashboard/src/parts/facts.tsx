import { Fragment, type ReactNode } from 'react';

/** Terms and what they are. */
export const Facts = ({ facts }: { readonly facts: readonly (readonly [term: string, value: ReactNode])[] }) => (
  <dl className="facts">
    {facts.map(([term, value]) => (
      <Fragment key={term}>
        <dt>{term}</dt>
        <dd>{value}</dd>
      </Fragment>
    ))}
  </dl>
);
