/** Answers for the lab's zone until it is killed. Usage: name-server.ts ADDRESS PORT */
import { startDnsServer } from '@unbounded/testing/dns-server';
import { readZone } from './names.ts';

const [host = '', port = ''] = process.argv.slice(2);
await startDnsServer({ host, port: Number(port), lookup: (name) => readZone()[name] });
