import { Link } from "@tanstack/react-router";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { cx } from "@/parts/cx";
import { Table, Td, Th } from "@/parts/table";
import { joinList, type Search as TriageSearch } from "@/routes/triage/search";
import * as texts from "@/texts";
import { Cards } from "./cards";
import { Chart } from "./charts/chart";
import { type Series, sizeOf } from "./charts/series";
import { type Report, topRules } from "./data";
import { formatDuration } from "./duration";

const words = texts.overview;
const severities = ["critical", "high", "medium", "low"] as const;
const most = 10;
/** Seconds. */
const day = 86_400;

function bySeverity<B extends Record<(typeof severities)[number], number>>(buckets: B[]): Series[] {
  return severities.map((one) => ({ key: one, label: texts.words.severity[one], colour: one, values: buckets.map((bucket) => bucket[one]) }));
}

/** The report: headline numbers, charts and tables. It prints as it is. `open` are the conditions of triage that list its open findings. */
export function Content({ report, open }: { report: Report; open?: TriageSearch }) {
  const { overview, backlog, activity, age, timeToFix, rules } = report;
  const spans = backlog.buckets.map((bucket) => bucket.timePeriod ?? {});
  const unit = words.charts[sizeOf(spans)];
  const times = timeToFix.buckets;
  return (
    <div className="grid gap-4">
      {overview.thisPeriod && overview.comparedPeriod && <Cards now={overview.thisPeriod} before={overview.comparedPeriod} open={open} />}
      <div className="grid gap-4 lg:grid-cols-2 print:grid-cols-2 print:gap-2">
        <Chart title={`${words.charts.backlog} ${unit}`} kind="area" buckets={spans} series={bySeverity(backlog.buckets)} empty={words.charts.empty.backlog} />
        <Chart
          title={`${words.charts.activity} ${unit}`}
          kind="bar"
          empty={words.charts.empty.activity}
          buckets={activity.buckets.map((bucket) => bucket.timePeriod ?? {})}
          series={[
            { key: "opened", label: words.series.opened, colour: "high", values: activity.buckets.map((bucket) => bucket.opened) },
            { key: "fixed", label: words.series.fixed, colour: "good", below: true, values: activity.buckets.map((bucket) => bucket.fixed) },
            { key: "ignored", label: words.series.ignored, colour: "low", below: true, values: activity.buckets.map((bucket) => bucket.ignored + bucket.provisionallyIgnored) },
            { key: "removed", label: words.series.removed, colour: "muted", below: true, values: activity.buckets.map((bucket) => bucket.removed) },
          ]}
        />
        <Chart title={words.charts.age} kind="line" buckets={age.buckets.map((bucket) => bucket.timePeriod ?? {})} series={bySeverity(age.buckets)} empty={words.charts.empty.age} />
        <Chart
          title={words.charts.timeToFix(unit)}
          kind="bar"
          empty={words.charts.empty.timeToFix}
          buckets={times.map((bucket) => bucket.timePeriod ?? {})}
          series={[{ key: "all", label: words.series.all, colour: "accent", values: times.map((bucket) => (bucket.all?.medianSeconds ?? 0) / day) }]}
          format={(value) => (value === 0 ? "–" : formatDuration(value * day))}
          tick={formatNumber}
        />
      </div>
      <div className="grid gap-4 lg:grid-cols-2 print:grid-cols-2 print:gap-2">
        <Projects projects={overview.projects} open={open} />
        <Rules rules={topRules(rules, most)} open={open} />
      </div>
    </div>
  );
}

function Projects({ projects, open }: { projects: Report["overview"]["projects"]; open?: TriageSearch }) {
  const { slug: org = "" } = useDeployment();
  return (
    <Top title={words.tables.projects} name={words.tables.project}>
      {projects.map((project) => (
        <Row key={project.projectId} open={project.open?.total ?? 0} before={project.openBefore} list={open && { ...open, project: joinList([project.name]) }}>
          <Link to="/$org/projects" params={{ org }} search={{ id: String(project.projectId) }} className="text-accent hover:underline">{project.name}</Link>
        </Row>
      ))}
    </Top>
  );
}

function Rules({ rules, open }: { rules: ReturnType<typeof topRules>; open?: TriageSearch }) {
  return (
    <Top title={words.tables.rules} name={words.tables.rule}>
      {rules.map((rule) => <Row key={rule.name} open={rule.open} before={rule.before} list={open && { ...open, rule: joinList([rule.name]) }}>{rule.name}</Row>)}
    </Top>
  );
}

function Top({ title, name, children }: { title: string; name: string; children: React.ReactNode[] }) {
  return (
    <section className="min-w-0 break-inside-avoid">
      <h2 className="mb-2 text-[0.8125rem] font-semibold">{title}</h2>
      <Table label={title} head={<><Th>{name}</Th><Th number>{words.tables.open}</Th><Th number>{words.tables.change}</Th></>}>
        {children.length > 0 ? children : <tr><Td colSpan={3} className="text-muted">{words.tables.none}</Td></tr>}
      </Table>
    </section>
  );
}

const signed = new Intl.NumberFormat(undefined, { signDisplay: "exceptZero" });

/** `list` are the conditions of triage that list what is open. */
function Row({ open, before, list, children }: { open: number; before: number; list?: TriageSearch; children: React.ReactNode }) {
  const { slug: org = "" } = useDeployment();
  const change = open - before;
  return (
    <tr>
      <Td className="max-w-0 w-full truncate">{children}</Td>
      <Td number>{list && open > 0 ? <Link to="/$org/triage" params={{ org }} search={list} title={words.cards.showOpen} className="text-accent hover:underline">{formatNumber(open)}</Link> : formatNumber(open)}</Td>
      <Td number className={cx(change > 0 && "text-bad", change < 0 && "text-good")}>{signed.format(change)}</Td>
    </tr>
  );
}
