import { LoginPage } from '../pages/login-page.tsx';
import { useSession } from './session.ts';
import { Shell } from './shell.tsx';

export const App = () => {
  const { token, farewell } = useSession();
  return token === undefined ? <LoginPage farewell={farewell} /> : <Shell />;
};
