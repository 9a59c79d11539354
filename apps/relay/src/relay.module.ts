import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';

import { hostModule, type HostPart, type HostServices } from '@unbounded/host';
import { type CertificateFiles, certificateSource } from '@unbounded/host/certificate';

import { followAllowedKeys } from './allowed-keys.ts';
import { linkSecret } from './links/link-secret.ts';
import { readKeyPair } from './platform-crypto.ts';
import type { RelayConfig } from './relay.config.ts';
import { relayMetrics } from './relay-metrics.ts';
import { Relay, type RelayOptions } from './relay.ts';

const METRICS_MS = 1000;
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

const linksOf = (config: RelayConfig, { logger }: HostServices): RelayOptions['links'] => {
  const { linkAddr, linkPeers, linkSecretFile, linkInterval } = config;
  if (linkAddr === undefined) return undefined;
  if (linkSecretFile === undefined)
    throw new Error('--link-addr requires --link-secret-file: replicas authenticate each other');
  return { listen: linkAddr, peers: linkPeers, secret: linkSecret(linkSecretFile, logger), everyMs: linkInterval };
};

/** No more connections than the process may have descriptors: those beyond it are refused, not left hanging. */
const connectionLimits = (config: RelayConfig, { logger }: HostServices) => {
  const { maxConnections, maxPending } = config;
  const wanted = maxConnections + maxPending;
  const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const possible = soft === undefined ? wanted : Math.max(2, Number(soft) - OTHER_DESCRIPTORS);
  if (possible >= wanted) return { maxConnections, maxPending };
  logger.warn({ wanted, possible }, 'fewer descriptors than --max-connections and --max-pending');
  const pending = Math.min(maxPending, Math.ceil(possible / 4));
  return { maxConnections: Math.min(maxConnections, possible - pending), maxPending: pending };
};

const secureContextOf = (files: CertificateFiles, { logger }: HostServices): RelayOptions['secureContext'] => {
  const source = certificateSource(files, logger);
  return () => source().secureContext;
};

const optionsOf = (config: RelayConfig, services: HostServices, queueAge: (ms: number) => void): RelayOptions => {
  const { keyFile, tlsCert, tlsKey, allowedKeys } = config;
  if (allowedKeys !== undefined && config.auth !== 'require')
    throw new Error(
      `--allowed-keys with --auth ${config.auth}: a key that nobody has to prove keeps nobody out; --auth require is right`,
    );
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new Error('--tls-cert and --tls-key must both be set, or neither');
  return {
    listen: config.addr,
    auth: config.auth,
    registerDeadlineMs: config.registerDeadline,
    proofDeadlineMs: config.proofDeadline,
    idleTimeoutMs: config.idleTimeout,
    writeTimeoutMs: config.writeTimeout,
    bytesPerSecond: config.maxBytesPerSecond,
    ...connectionLimits(config, services),
    maxConnectionsPerAddress: config.maxConnectionsPerAddress,
    newConnectionsPerSecond: config.newConnectionsPerSecond,
    queueBytes: config.peerQueue,
    memoryBytes: config.queueMemory,
    staticKey: keyFile === undefined ? undefined : readKeyPair(readFileSync(keyFile, 'utf8'), keyFile),
    secureContext: tlsCert && tlsKey ? secureContextOf({ cert: tlsCert, key: tlsKey }, services) : () => undefined,
    allowed: allowedKeys === undefined ? undefined : followAllowedKeys(allowedKeys, services.logger),
    isProxy: proxies(config.proxyProtocol),
    links: linksOf(config, services),
    queueAge,
    logger: services.logger,
  };
};

const createParts = (config: RelayConfig, services: HostServices): readonly HostPart[] => {
  const metrics = relayMetrics(services.metrics);
  const options = optionsOf(config, services, metrics.queueAge);
  const relay = new Relay(options);
  let timer: NodeJS.Timeout | undefined;
  return [
    {
      name: 'relay',
      // Without a list it would turn members away whom another replica takes.
      get isReady() {
        return options.allowed?.isKnown ?? true;
      },
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
