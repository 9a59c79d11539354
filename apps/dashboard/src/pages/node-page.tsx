import type { NodeReport } from '@unbounded/status';
import { useMemo } from 'react';
import { useElapsed } from '../app/clock.ts';
import { type NodeState, useNodeReport } from '../app/node-report.ts';
import { useSession, useView } from '../app/session.ts';
import { Age } from '../parts/age.tsx';
import { StateBadge } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { SiteLink } from '../parts/links.tsx';
import { NodeForwarding } from '../parts/node-forwarding.tsx';
import { ReportTables } from '../parts/report-tables.tsx';
import { Page } from '../parts/page.tsx';
import { ProblemList } from '../parts/problem-list.tsx';
import { ago, count, UNKNOWN } from '../view/format.ts';
import { sourceText } from '../view/nodes.ts';
import { problemsOf } from '../view/problems.ts';
import { isOldReport } from '../view/report-age.ts';
import type { NodeView } from '../view/types.ts';

/** How old what stands below is. */
const ReportAge = ({ state: { answer, error, isLoading } }: { readonly state: NodeState }) => {
  const [at, age] = [answer?.at ?? 0, answer?.ageMs ?? 0];
  const text = useElapsed((now) => ago(age + Math.max(0, now - at)));
  const isOld = useElapsed((now) => isOldReport(age + now - at));
  if (isLoading) return <p role="status">Loading the report.</p>;
  return (
    <>
      {error !== undefined && <p className="banner">The report cannot be read: {error}. Trying again every 10 s.</p>}
      {answer && isOld && (
        <p className="banner">
          <strong>Stale.</strong> {error === undefined ? 'The node has not reported since: what' : 'What'} follows is
          the last report that could be read, and may be wrong by now.
        </p>
      )}
      {answer ? (
        <p>The report was received {text}.</p>
      ) : (
        error === undefined && <p>The server holds no report of this node.</p>
      )}
    </>
  );
};

const factsOf = (node: NodeView, report: NodeReport | undefined) =>
  [
    ['State', <StateBadge key="state" state={node.state} />],
    ['Known by', sourceText(node.source)],
    ...(node.lastReportTime === undefined
      ? []
      : [['Last report', <Age key="age" of={node.lastReportTime} />] as const]),
    ['Site', node.site === undefined ? 'none' : <SiteLink key="site" name={node.site} />],
    ['Gateway of pools', node.pools.join(', ') || 'none'],
    ['Node is Ready', node.ready],
    ['Peers healthy', node.peers ? `${count(node.peers.healthy)} of ${count(node.peers.total)}` : UNKNOWN],
    ['Peers relayed', node.peers ? count(node.peers.relayed) : UNKNOWN],
    ['Agent version', report?.agentVersion ?? node.agentVersion ?? UNKNOWN],
    ['Role', report?.connectivity?.role ?? UNKNOWN],
    ['Data path', report?.connectivity?.dataplane ?? UNKNOWN],
    ['Report is complete', report ? (report.isComplete ? 'yes' : 'not yet, since the agent started') : UNKNOWN],
  ] as const;

const NodeProblems = ({ name }: { readonly name: string }) => {
  const problems = useView((view) => view.problems);
  const order = useView((view) => view.order);
  const found = useMemo(() => problemsOf({ problems, order }, 'Node', name), [problems, order, name]);
  return (
    <section aria-labelledby="problems">
      <h2 id="problems">Problems ({count(found.length)})</h2>
      <ProblemList problems={found} empty="None, of what nodes report." />
    </section>
  );
};

export const NodePage = ({ name }: { readonly name: string }) => {
  const { token = '' } = useSession();
  const node = useView(({ nodes }) => (Object.hasOwn(nodes, name) ? nodes[name] : undefined));
  const state = useNodeReport(name, token, node);
  const report = state.answer?.report;
  return (
    <Page title={`Node ${name}`}>
      {node ? <Facts facts={factsOf(node, report)} /> : <p>The view has no such node now.</p>}
      <NodeProblems name={name} />
      <h2>Report of the node</h2>
      <ReportAge state={state} />
      {report && <ReportTables report={report} />}
      <NodeForwarding name={name} />
    </Page>
  );
};
