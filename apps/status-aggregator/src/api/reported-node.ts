import type { NodeReports } from '../intake.port.ts';
import { isNodeName } from '../reports/node-name.ts';
import { Refusal } from './refusal.ts';

type Reported = NonNullable<ReturnType<NodeReports['report']>>;

/** As clients get it, alone or among others. */
export const reportedJson = ({ report, ageMs }: Reported): string => JSON.stringify({ report, ageMs });

/** The last report of the node that a path names. @throws Refusal 400 when that is no name, 404 when the node has not reported */
export const reportedNode = (reports: NodeReports, name: string): Reported => {
  if (!isNodeName(name)) {
    throw new Refusal({
      status: 400,
      reason: 'InvalidName',
      message: 'this is no name of a Node (RFC 1123 subdomain)',
    });
  }
  const found = reports.report(name);
  if (found === undefined) {
    throw new Refusal({ status: 404, reason: 'NodeUnknown', message: `node ${name} has not reported` });
  }
  return found;
};
