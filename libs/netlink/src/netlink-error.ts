import { getSystemErrorMap } from 'node:util';

/** Name and meaning of an errno of this machine. */
const describe = (errno: number): readonly [code: string, text: string] =>
  getSystemErrorMap().get(-errno) ?? [`E${errno}`, 'unknown error'];

/** The kernel (or the socket) refused. */
export class NetlinkError extends Error {
  override readonly name = 'NetlinkError';
  /** Positive errno. */
  readonly errno: number;
  /** `EEXIST`, `ENODEV`, … */
  readonly code: string;
  /** The kernel's own explanation (NLMSGERR_ATTR_MSG), where it gives one. */
  readonly extack: string | undefined;
  /** What was tried: `create link vxlan0`. */
  readonly what: string;

  constructor(errno: number, what: string, extack?: string) {
    const [code, text] = describe(errno);
    super(`${what}: ${extack ?? text} (${code})`);
    this.errno = errno;
    this.code = code;
    this.extack = extack;
    this.what = what;
  }
}

/** True for the answers that mean "there is no such object". */
export const isAbsent = (error: unknown): boolean =>
  error instanceof NetlinkError && ['ENOENT', 'ESRCH', 'ENODEV', 'EADDRNOTAVAIL'].includes(error.code);
