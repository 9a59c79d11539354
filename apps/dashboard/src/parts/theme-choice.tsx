import { type Theme, THEMES, useTheme } from '../app/theme.ts';

export const ThemeChoice = () => {
  const [theme, choose] = useTheme();
  return (
    <label className="inline">
      <span className="unseen">Colours</span>
      <select value={theme} onChange={({ target }) => choose(target.value as Theme)}>
        {THEMES.map((each) => (
          <option key={each} value={each}>
            {each === 'system' ? 'System colours' : `${each[0]!.toUpperCase()}${each.slice(1)}`}
          </option>
        ))}
      </select>
    </label>
  );
};
