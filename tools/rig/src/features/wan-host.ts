import { existsSync } from 'node:fs';
import { familyOf, PLANS } from '../layout/addresses.ts';
import { namespaceOf, WAN } from '../layout/layout.ts';
import { run } from '../machine/command.ts';

/**
 * Makes a host on the WAN, where the outside world is; one that is there is left alone. Its interface is eth0.
 * @param port of the switch, at which it is
 * @returns whether it was made
 */
export const makeWanHost = (name: string, port: string, ips: readonly string[]): boolean => {
  const namespace = namespaceOf(name);
  if (existsSync(`/run/netns/${namespace}`)) return false;
  run(['ip', 'netns', 'add', namespace]);
  run(['ip', '-n', namespaceOf(WAN.name), '-batch', '-'], {
    input: `link add ${port} type veth peer name eth0 netns ${namespace}
link set ${port} master wan0 up
`,
  });
  const addresses = ips.map((ip) => `addr add ${ip}/${PLANS[familyOf(ip)].wanLength} dev eth0 nodad\n`);
  run(['ip', '-n', namespace, '-batch', '-'], { input: `${addresses.join('')}link set lo up\nlink set eth0 up\n` });
  return true;
};
