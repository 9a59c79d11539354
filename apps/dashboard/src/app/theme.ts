import { useCallback, useState } from 'react';

const KEY = 'unbounded-theme';
export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const kept = (): Theme => {
  try {
    return THEMES.find((theme) => theme === globalThis.localStorage.getItem(KEY)) ?? 'system';
  } catch {
    return 'system';
  }
};

export const applyTheme = (theme: Theme = kept()): void => {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
};

export const useTheme = (): readonly [Theme, (theme: Theme) => void] => {
  const [theme, setTheme] = useState(kept);
  const choose = useCallback((next: Theme) => {
    setTheme(next);
    applyTheme(next);
    try {
      globalThis.localStorage.setItem(KEY, next);
    } catch {
      // Chosen for this page alone.
    }
  }, []);
  return [theme, choose];
};
