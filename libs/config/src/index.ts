export { ConfigError, type ConfigOf, describeConfig, loadConfig, option, readConfig } from './config.ts';
export {
  blocks,
  choice,
  controlPlaneOptions,
  duration,
  flag,
  healthAddress,
  path,
  port,
  text,
  textOr,
  whole,
} from './schemas.ts';
