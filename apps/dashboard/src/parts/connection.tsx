import { useElapsed } from '../app/clock.ts';
import { useSession } from '../app/session.ts';
import { duration } from '../view/format.ts';
import { isStale } from '../stream/stream-state.ts';
import { Age, ElapsedAge } from './age.tsx';

const WORDS = { connecting: 'Connecting', live: 'Live', waiting: 'Disconnected', ended: 'Ended' } as const;
const TONES = { connecting: 'unknown', live: 'good', waiting: 'bad', ended: 'bad' } as const;

/** Whether what is shown is what is: of the stream, and of the last update. */
export const Connection = () => {
  const { stream } = useSession();
  const isOld = useElapsed((now) => stream !== undefined && isStale(stream, now));
  if (!stream) return null;
  const { phase, updatedAt } = stream;
  const isQuiet = phase === 'live' && isOld;
  return (
    <p className="connection">
      <span className={`badge ${isQuiet ? 'warn' : TONES[phase]}`}>{isQuiet ? 'No answer' : WORDS[phase]}</span>{' '}
      {updatedAt !== undefined && (
        <span>
          changed <ElapsedAge at={updatedAt} />
        </span>
      )}
    </p>
  );
};

const RetryIn = ({ at }: { readonly at: number }) => (
  <>{useElapsed((now) => (at <= now ? 'Trying again now.' : `Trying again in ${duration(at - now + 999)}.`))}</>
);

/** Says that what stands below may be wrong by now, since when, and why. */
export const StaleBanner = () => {
  const { stream } = useSession();
  const isOld = useElapsed((now) => stream !== undefined && isStale(stream, now));
  const age = useElapsed((now) => (stream?.confirmedAt === undefined ? '' : duration(now - stream.confirmedAt)));
  return (
    <div role="status" className="banner-place">
      {isOld && (
        <div className="banner">
          <strong>Stale.</strong> <span aria-hidden="true">This is the state of {age} ago.</span>{' '}
          {stream?.reason ?? 'The server does not answer.'}{' '}
          <span aria-hidden="true">{stream?.retryAt !== undefined && <RetryIn at={stream.retryAt} />}</span>
        </div>
      )}
    </div>
  );
};

const NONE: readonly string[] = [];

/** What hinders the server: what stands below was right, and may be late. */
export const Notices = () => {
  const { stream } = useSession();
  const notices = stream?.notices ?? NONE;
  const objectsTime = stream?.view?.objectsTime;
  return (
    <div role="status" className="banner-place">
      {objectsTime !== undefined && (
        <div className="banner">
          <strong>No way to the API server.</strong> Which nodes, sites and pools there are, and the conditions of
          nodes, is as it was <Age of={objectsTime} />. What nodes report of themselves is up to date.
        </div>
      )}
      {notices.map((notice) => (
        <div key={notice} className="banner">
          <strong>Notice of the server.</strong> {notice}
        </div>
      ))}
    </div>
  );
};
