export {
  ConfigError,
  type ConfigOf,
  describeConfig,
  flagOf,
  loadConfig,
  option,
  type Option,
  type Options,
  readConfig,
  type Sources,
  variableOf,
} from './config.ts';
export { choice, controlPlaneOptions, duration, flag, healthAddress, path, port, text, whole } from './schemas.ts';
