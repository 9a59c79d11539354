import { memo } from 'react';
import type { ProblemRow } from '../view/problems.ts';
import type { Problem } from '../view/types.ts';
import { Age } from './age.tsx';
import { SeverityBadge } from './badges.tsx';
import { Names, ObjectLink, SiteLink } from './links.tsx';

const ProblemItem = memo(function ProblemItem({
  problem,
  until,
}: {
  readonly problem: Problem;
  readonly until?: string;
}) {
  const { severity, kind, name, reason, message, consequence, sites, since } = problem;
  return (
    <li className={`problem ${until === undefined ? severity : 'ended'}`}>
      <p className="what">
        <SeverityBadge severity={severity} /> {kind} <ObjectLink kind={kind} name={name} />: <strong>{message}</strong>{' '}
        <code>{reason}</code>
      </p>
      <p>{consequence}</p>
      <p className="muted">
        Sites affected: <Names names={sites} of={SiteLink} />. Began <Age of={since} />
        {until !== undefined && (
          <>
            , ended <Age of={until} />
          </>
        )}
        .
      </p>
    </li>
  );
});

export const ProblemList = ({
  problems,
  empty,
}: {
  readonly problems: readonly ProblemRow[];
  readonly empty: string;
}) =>
  problems.length === 0 ? (
    <p>{empty}</p>
  ) : (
    <ol className="problems">
      {problems.map((problem) => (
        <ProblemItem key={problem.id} problem={problem} />
      ))}
    </ol>
  );

interface Ended extends Problem {
  readonly until: string;
}

export const EndedList = ({ problems }: { readonly problems: readonly Ended[] }) => (
  <ol className="problems">
    {problems.map((problem) => (
      <ProblemItem
        key={`${problem.kind} ${problem.name} ${problem.reason} ${problem.since} ${problem.until}`}
        problem={problem}
        until={problem.until}
      />
    ))}
  </ol>
);
