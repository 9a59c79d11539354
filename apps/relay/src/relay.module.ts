import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';

import { hostModule, type HostPart, type HostServices } from '@unbounded/host';

import { certificateSource } from './certificate.ts';
import { readKeyPair } from './platform-crypto.ts';
import { type RelayConfig } from './relay.config.ts';
import { relayMetrics } from './relay-metrics.ts';
import { Relay, type RelayOptions } from './relay.ts';

const METRICS_MS = 1000;
const LEAST_SECRET_BYTES = 32;
/** Descriptors for everything but clients: libraries, the health server, links. */
const OTHER_DESCRIPTORS = 64;

const proxies = (prefixes: readonly string[]): ((address: string) => boolean) => {
  const list = new BlockList();
  for (const entry of prefixes) {
    const [address = '', length] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    list.addSubnet(address, Number(length ?? (family === 'ipv6' ? 128 : 32)), family);
  }
  return (address) => prefixes.length > 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
};

const linksOf = (config: RelayConfig): RelayOptions['links'] => {
  const { linkAddr, linkPeers, linkSecretFile, linkInterval } = config;
  if (linkAddr === undefined) return undefined;
  if (linkSecretFile === undefined)
    throw new Error('--link-addr needs --link-secret-file: replicas prove to each other');
  const secret = readFileSync(linkSecretFile);
  if (secret.length < LEAST_SECRET_BYTES)
    throw new Error(`${linkSecretFile} holds ${secret.length} bytes: ${LEAST_SECRET_BYTES} or more are right`);
  return { listen: linkAddr, peers: linkPeers, secret, everyMs: linkInterval };
};

/** No more connections than the process may have descriptors: those beyond it are refused, not left hanging. */
const connectionLimit = (wanted: number, { logger }: HostServices): number => {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const possible = soft === undefined ? wanted : Number(soft) - OTHER_DESCRIPTORS;
  if (possible < wanted) logger.warn({ wanted, possible }, 'fewer descriptors than --max-connections');
  return Math.max(1, Math.min(wanted, possible));
};

const optionsOf = (config: RelayConfig, services: HostServices, queueAge: (ms: number) => void): RelayOptions => {
  const { keyFile, tlsCert, tlsKey } = config;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) throw new Error('--tls-cert and --tls-key go together');
  return {
    listen: config.addr,
    auth: config.auth,
    registerDeadlineMs: config.registerDeadline,
    proofDeadlineMs: config.proofDeadline,
    idleTimeoutMs: config.idleTimeout,
    writeTimeoutMs: config.writeTimeout,
    bytesPerSecond: config.maxBytesPerSecond,
    maxConnections: connectionLimit(config.maxConnections, services),
    maxConnectionsPerAddress: config.maxConnectionsPerAddress,
    newConnectionsPerSecond: config.newConnectionsPerSecond,
    queueBytes: config.peerQueue,
    memoryBytes: config.queueMemory,
    staticKey: keyFile === undefined ? undefined : readKeyPair(readFileSync(keyFile, 'utf8'), keyFile),
    secureContext:
      tlsCert && tlsKey ? certificateSource({ cert: tlsCert, key: tlsKey }, services.logger) : () => undefined,
    isProxy: proxies(config.proxyProtocol),
    links: linksOf(config),
    queueAge,
    logger: services.logger,
  };
};

const createParts = (config: RelayConfig, services: HostServices): readonly HostPart[] => {
  const metrics = relayMetrics(services.metrics);
  const relay = new Relay(optionsOf(config, services, metrics.queueAge));
  let timer: NodeJS.Timeout | undefined;
  return [
    {
      name: 'relay',
      start: async () => {
        await relay.start();
        timer = setInterval(() => metrics.update(relay.state), METRICS_MS);
        services.logger.info({ port: relay.port, auth: config.auth, linkPort: relay.linkPort }, 'relaying');
      },
      stop: async () => {
        await relay.drain(config.drainTime);
        clearInterval(timer);
      },
    },
  ];
};

export const relayModule = (config: RelayConfig) => (services: HostServices) =>
  hostModule(() => createParts(config, services));
