import { type FormEvent, useId, useState } from 'react';
import { signIn } from '../app/session.ts';
import { isToken } from '../stream/subprotocols.ts';

const NO_TOKEN = 'This is no bearer token. It is one word: letters, digits and - . _ ~ + / alone.';

/** Asks for a token. It goes to the server that the page is from, and nowhere else. */
export const LoginPage = ({ farewell }: { readonly farewell?: string | undefined }) => {
  const [error, setError] = useState<string>();
  const [id, errorId] = [useId(), useId()];
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const text = new FormData(event.currentTarget).get('token');
    const token = (typeof text === 'string' ? text : '').trim().replace(/^Bearer\s+/i, '');
    if (isToken(token)) signIn(token);
    else setError(NO_TOKEN);
  };
  return (
    <main id="main" className="login">
      <h1>Network status: sign in</h1>
      {farewell !== undefined && (
        <p role="alert" className="banner">
          You were signed out. {farewell} The token was forgotten.
        </p>
      )}
      <form onSubmit={submit}>
        <label htmlFor={id}>Token of the Kubernetes API server</label>
        <input
          {...{ id, name: 'token', type: 'password', autoComplete: 'off', spellCheck: false, required: true }}
          aria-invalid={error !== undefined}
          aria-describedby={error === undefined ? undefined : errorId}
        />
        {error !== undefined && (
          <p id={errorId} role="alert" className="error">
            {error}
          </p>
        )}
        <button type="submit">Sign in</button>
      </form>
      <h2>Where to get one</h2>
      <pre>kubectl create token NAME</pre>
      <p>
        NAME is a ServiceAccount that may <code>get</code> the resource <code>status</code> of the group{' '}
        <code>net.unbounded-cloud.io</code>, by the ClusterRole <code>unbounded:status-viewer</code> or{' '}
        <code>view</code>. A token of a user (OIDC) will do as well.
      </p>
      <p>
        The token is kept in this tab until it is closed or you sign out. It is sent to this server alone, and forgotten
        when the server does not accept it any more.
      </p>
    </main>
  );
};
