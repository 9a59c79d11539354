import { loadConfig } from '@unbounded/config';
import { createLogger, createMetrics } from '@unbounded/telemetry';
import { agentOptions } from '../../agent.config.ts';
import { openAgent } from '../../agent/open-agent.ts';
import { connectivity } from '../section.ts';
import type { RotationTimes } from './rotation.ts';

/** The agent as a process of its own that rotation.kernel.spec.ts starts and kills, with times that a test can wait for. */

const times = JSON.parse(process.env['ROTATION_TIMES'] ?? '{}') as RotationTimes;
const config = loadConfig('agent', agentOptions, process);
const logger = createLogger({ name: config.nodeName, level: config.logLevel });
await openAgent(config, { logger, metrics: createMetrics() }, [connectivity(config, {}, times)]).start();
