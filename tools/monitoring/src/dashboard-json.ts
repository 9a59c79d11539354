import {
  BigValueColorMode,
  BigValueGraphMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
  VizTooltipOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkPlacement,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimeseriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import type { Dashboard, Panel, Variable } from './dashboard.ts';

/** The JSON of dashboards, by Grafana's typed builder. */

const TAG = 'unbounded';
const SOURCE = { type: 'prometheus', uid: '${datasource}' };
const SIZES = { stat: { w: 6, h: 4 }, lines: { w: 12, h: 8 }, areas: { w: 12, h: 8 } } as const;
const [WIDTH, GREEN, RED] = [24, 'green', 'red'];

const queriesOf = ({ kind, queries }: Panel): DataqueryBuilder[] =>
  queries.map(({ expr, legend }, index) => {
    const query = new DataqueryBuilder()
      .refId(String.fromCharCode(65 + index))
      .expr(expr)
      .legendFormat(legend);
    return kind === 'stat' ? query.instant() : query.range();
  });

const thresholdsOf = ({ bad }: Panel): ThresholdsConfigBuilder => {
  const steps = !bad
    ? [{ value: null, color: GREEN }]
    : 'from' in bad
      ? [
          { value: null, color: GREEN },
          { value: bad.from, color: RED },
        ]
      : [
          { value: null, color: RED },
          { value: bad.below, color: GREEN },
        ];
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps);
};

const statOf = (panel: Panel): StatBuilder =>
  new StatBuilder()
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .thresholds(thresholdsOf(panel));

/** From a line of a node to that node. */
const toNode = new DashboardLinkBuilder('Node ${__field.labels.node}').url(
  '/d/unbounded-node?var-node=${__field.labels.node}&var-datasource=${datasource}&${__url_time_range}',
);

const timeseriesOf = (panel: Panel): TimeseriesBuilder => {
  const legend = new VizLegendOptionsBuilder()
    .displayMode(LegendDisplayMode.Table)
    .placement(LegendPlacement.Bottom)
    .showLegend(true)
    .calcs(['lastNotNull', 'max']);
  const builder = new TimeseriesBuilder()
    .legend(legend)
    .tooltip(new VizTooltipOptionsBuilder().mode(TooltipDisplayMode.Multi).sort(SortOrder.Descending))
    .min(0);
  if (panel.kind === 'areas') builder.fillOpacity(30).stacking(new StackingConfigBuilder().mode(StackingMode.Normal));
  return panel.queries.some(({ legend }) => legend.includes('{{node}}')) ? builder.dataLinks([toNode]) : builder;
};

const variableOf = ({ name, label, series, valuesOf, isMultiple }: Variable): QueryVariableBuilder => {
  const variable = new QueryVariableBuilder(name)
    .label(label)
    .datasource(SOURCE)
    .query({ query: `label_values(${series}, ${valuesOf})`, refId: name })
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(isMultiple)
    .includeAll(isMultiple);
  return isMultiple ? variable.allValue('.*').current({ selected: true, text: 'All', value: '$__all' }) : variable;
};

const emptyDashboard = ({ uid, title, description, variables }: Dashboard): DashboardBuilder =>
  new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags([TAG])
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .time({ from: 'now-6h', to: 'now' })
    .timezone('browser')
    .refresh('1m')
    .link(
      new DashboardLinkBuilder('Unbounded')
        .type(DashboardLinkType.Dashboards)
        .tags([TAG])
        .asDropdown(true)
        .keepTime(true)
        .includeVars(true),
    )
    .variables([
      new DatasourceVariableBuilder('datasource').label('Data source').type('prometheus'),
      ...variables.map(variableOf),
    ]);

/** The same text for the same dashboard, always. */
export const dashboardJson = (board: Dashboard): string => {
  const builder = emptyDashboard(board);
  let [id, x, y, height] = [0, 0, 0, 0];
  const newLine = (): void => void ([x, y, height] = [0, y + height, 0]);
  for (const row of board.rows) {
    newLine();
    builder.withRow(new RowBuilder(row.title).id((id += 1)).gridPos({ x: 0, y, w: WIDTH, h: 1 }));
    y += 1;
    for (const panel of row.panels) {
      const { w, h } = SIZES[panel.kind];
      if (x + w > WIDTH || (height > 0 && height !== h)) newLine();
      const built = (panel.kind === 'stat' ? statOf(panel) : timeseriesOf(panel))
        .id((id += 1))
        .title(panel.title)
        .description(panel.description)
        .unit(panel.unit)
        .datasource(SOURCE)
        .gridPos({ x, y, w, h })
        .targets(queriesOf(panel));
      builder.withPanel(built);
      [x, height] = [x + w, h];
    }
  }
  const text = JSON.stringify(
    builder.build(),
    // The builder puts every link into a menu; without a placement they stand above the panels.
    (key, value: unknown) =>
      key === 'placement' && value === DashboardLinkPlacement.InControlsMenu ? undefined : value,
    2,
  );
  return `${text}\n`;
};
