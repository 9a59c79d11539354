import { useElapsed, wallClock } from '../app/clock.ts';
import { ageMs, ago, duration } from '../view/format.ts';

/** How long ago a time of the server is, by this machine's clock; the time itself is there for who points at it. */
export const Age = ({ of, isPlain = false }: { readonly of: string; readonly isPlain?: boolean }) => {
  const text = useElapsed(() => {
    const age = ageMs(of, wallClock());
    if (age === undefined) return of;
    return isPlain ? duration(age) : ago(age);
  });
  return (
    <time dateTime={of} title={of}>
      {text}
    </time>
  );
};

/** The same of a moment of this page's own elapsed clock. */
export const ElapsedAge = ({ at }: { readonly at: number }) => <>{useElapsed((now) => ago(now - at))}</>;
