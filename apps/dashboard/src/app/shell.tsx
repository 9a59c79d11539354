import { useRef } from 'react';
import { Announcer } from '../parts/announcer.tsx';
import { Connection, Notices, StaleBanner } from '../parts/connection.tsx';
import { ThemeChoice } from '../parts/theme-choice.tsx';
import { hrefOf } from '../view/address.ts';
import { useAddress } from './address.ts';
import { Pages } from './pages.tsx';
import { signOut, useSession } from './session.ts';

const SECTIONS = [
  ['', 'Overview'],
  ['sites', 'Sites'],
  ['matrix', 'Reach'],
  ['pools', 'Gateways'],
  ['nodes', 'Nodes'],
  ['topology', 'Topology'],
  ['egress', 'Egress'],
] as const;

const Navigation = () => {
  const [section = ''] = useAddress().path;
  return (
    <nav aria-label="Sections">
      <ul>
        {SECTIONS.map(([path, title]) => (
          <li key={path}>
            <a href={hrefOf(path === '' ? [] : [path])} aria-current={section === path ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
};

const Waiting = () => {
  const { stream } = useSession();
  return (
    <main id="main">
      <h1>Network status</h1>
      <p role="status">
        {stream?.phase === 'waiting'
          ? `The view has not come yet. ${stream.reason ?? ''} Trying again.`
          : 'Waiting for the view of the cluster. After a restart of the server it takes some seconds.'}
      </p>
    </main>
  );
};

export const Shell = () => {
  const main = useRef<HTMLDivElement>(null);
  const { stream } = useSession();
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="top">
        <p className="brand">Unbounded network</p>
        <Navigation />
        <div className="tools">
          <Connection />
          <ThemeChoice />
          <button type="button" onClick={() => signOut()}>
            Sign out
          </button>
        </div>
      </header>
      <StaleBanner />
      <Notices />
      <Announcer />
      <div ref={main} tabIndex={-1} className="content">
        {stream?.view ? <Pages /> : <Waiting />}
      </div>
    </>
  );
};
