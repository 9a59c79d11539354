import { useEffect, useRef, useState } from 'react';
import { useSession } from '../app/session.ts';
import { newlyCritical } from '../view/problems.ts';

/** Tells a screen reader of new critical problems. */
export const Announcer = () => {
  const view = useSession().stream?.view;
  const before = useRef(view);
  const [text, setText] = useState('');
  useEffect(() => {
    const told = newlyCritical(before.current, view);
    before.current = view;
    if (told !== '') setText(told);
  }, [view]);
  return (
    <div className="unseen" aria-live="polite">
      {text}
    </div>
  );
};
