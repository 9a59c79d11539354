import type { NodeReport } from '@unbounded/status';
import { type ReactNode, useId, useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { count, ofAll } from '../view/format.ts';
import { hasWords } from '../view/problems.ts';
import { type GroupRow, groupRows, type PeerRow, peerRows, type SessionRow, sessionRows } from '../view/report.ts';
import { DataTable } from './data-table.tsx';
import { SearchField } from './filters.tsx';
import { GROUP_COLUMNS, PEER_COLUMNS, SESSION_COLUMNS } from './report-columns.tsx';

const Section = ({ title, children }: { readonly title: string; readonly children: ReactNode }) => {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {children}
    </section>
  );
};

const peerName = ({ name }: PeerRow): string => name;
const sessionId = ({ id }: SessionRow): string => id;
const groupName = ({ name }: GroupRow): string => name;
const BY_STATE = { by: 'state', isDescending: false };
const BY_PEER = { by: 'peer', isDescending: false };
const BY_ACTIVE = { by: 'active', isDescending: false };

const Connectivity = ({ report }: { readonly report: NodeReport }) => {
  const [{ q }] = useQuery();
  const [peers, sessions, groups] = useMemo(
    () => [peerRows(report), sessionRows(report), groupRows(report)] as const,
    [report],
  );
  const found = useMemo(() => peers.filter(({ name }) => hasWords(q, [name])), [peers, q]);
  const itsSessions = useMemo(() => sessions.filter(({ peer }) => hasWords(q, [peer])), [sessions, q]);
  return (
    <>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search peers" />
      </form>
      <Section title={`Peers (${ofAll(found.length, peers.length)})`}>
        <DataTable
          caption="Peers"
          columns={PEER_COLUMNS}
          usualSort={BY_STATE}
          nameOf={peerName}
          rows={found}
          empty="None."
        />
      </Section>
      <Section title={`WireGuard sessions (${ofAll(itsSessions.length, sessions.length)})`}>
        <DataTable
          caption="WireGuard sessions"
          columns={SESSION_COLUMNS}
          usualSort={BY_PEER}
          sortName="sessions"
          nameOf={sessionId}
          rows={itsSessions}
          empty="None."
        />
      </Section>
      <Section title={`Groups of gateways (${count(groups.length)})`}>
        <DataTable
          caption="Groups of gateways"
          columns={GROUP_COLUMNS}
          usualSort={BY_ACTIVE}
          sortName="groups"
          nameOf={groupName}
          rows={groups}
          empty="None."
        />
      </Section>
    </>
  );
};

const Drops = ({ drops }: Pick<NodeReport, 'drops'>) => {
  const some = Object.entries(drops).sort(([, a], [, b]) => b - a);
  return (
    <Section title="Packets dropped since the agent started, by reason">
      {some.length === 0 ? (
        <p>None is reported.</p>
      ) : (
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Reason</th>
              <th scope="col" className="number">
                Packets
              </th>
            </tr>
          </thead>
          <tbody>
            {some.map(([reason, packets]) => (
              <tr key={reason}>
                <th scope="row">{reason}</th>
                <td className="number">{count(packets)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
};

const Egress = ({ egress }: Pick<NodeReport, 'egress'>) => (
  <Section title="Egress">
    {egress === undefined ? (
      <p>Not known, or turned off.</p>
    ) : (
      <>
        <p>
          {egress.isInForce ? 'The kernel enforces the plan.' : <strong>The kernel does not enforce the plan.</strong>}{' '}
          {count(egress.steeredPods)} pods of this node leave with egress addresses.
        </p>
        <p>Addresses that it answers for: {egress.heldAddresses.join(', ') || 'none'}.</p>
      </>
    )}
  </Section>
);

const OwnProblems = ({ problems }: Pick<NodeReport, 'problems'>) =>
  problems.length === 0 ? null : (
    <Section title={`What it says of itself (${count(problems.length)})`}>
      <ul>
        {problems.map(({ reason, message }) => (
          <li key={`${reason} ${message}`}>
            <code>{reason}</code> {message}
          </li>
        ))}
      </ul>
    </Section>
  );

/** All of a report. */
export const ReportTables = ({ report }: { readonly report: NodeReport }) => (
  <>
    <OwnProblems problems={report.problems} />
    {report.connectivity ? <Connectivity report={report} /> : <p>Nothing is known of connectivity.</p>}
    <Drops drops={report.drops} />
    <Egress egress={report.egress} />
  </>
);
