/** Content of /proc/PID/stat (proc(5)). */
export interface ProcessStat {
  readonly name: string;
  /** What follows the name: the first is the state, the second the parent. */
  readonly fields: readonly string[];
}

/** A name may hold spaces and parentheses. */
export const parseProcessStat = (stat: string): ProcessStat => {
  const end = stat.lastIndexOf(')');
  return { name: stat.slice(stat.indexOf('(') + 1, end), fields: stat.slice(end + 2).split(' ') };
};
