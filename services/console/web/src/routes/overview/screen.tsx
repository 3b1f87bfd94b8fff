import { Link, useNavigate } from "@tanstack/react-router";
import { Download, Printer } from "lucide-react";
import { useState } from "react";
import { useDeployment, useMay } from "@/api/session";
import { formatDateTime, formatNumber } from "@/format";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { Menu, MenuItem } from "@/parts/menu";
import { Page } from "@/parts/page";
import { Empty, Failure, Loading } from "@/parts/states";
import { useToast } from "@/parts/toast";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { Content } from "./content";
import { Controls } from "./controls";
import { reportCsv, save } from "./csv";
import { type Report, requestOf, useReport } from "./data";
import { filterText } from "./filters";
import { saveFindings } from "./findings-csv";
import { formatPeriod, lastDay, periodOf, type Search, parseSearch } from "./period";
import { overviewRoute } from "./routes";
import { ScheduleDialog } from "./schedule-dialog";
import { inTriage } from "./triage";

const words = texts.overview;

export default function Overview() {
  const search = useParsed(parseSearch, overviewRoute.useSearch());
  const navigate = useNavigate({ from: overviewRoute.fullPath });
  const report = useReport(search);
  const onChange = (next: Search) => void navigate({ search: next, replace: true });
  const period = periodOf(search);
  const compared = report.data?.overview.comparedPeriod?.timePeriod;
  const intro = [formatPeriod(period), compared && words.comparedWith(formatPeriod(compared)), filterText(search.filters)].filter(Boolean).join(" · ");
  return (
    <Page title={words.title} intro={intro} actions={<Actions search={search} report={report.data} />}>
      <p className="mb-2 hidden text-xs text-muted print:block">{useDeployment().displayName} · {words.printed(formatDateTime(new Date()))}</p>
      <Controls search={search} onChange={onChange} />
      {report.isPending && <Loading />}
      {report.isError && !report.data && <Failure error={report.error} retry={() => void report.refetch()} />}
      {report.data && (
        <div className={cx("transition-opacity", report.isPlaceholderData && "opacity-60")} aria-busy={report.isFetching}>
          {isEmpty(report.data) ? <NoFindings /> : <Content report={report.data} open={inTriage(search.filters, period)} />}
        </div>
      )}
    </Page>
  );
}

/** Nothing was ever found in both periods: there may be no scan at all. */
const isEmpty = ({ overview: { thisPeriod, comparedPeriod } }: Report): boolean =>
  [thisPeriod, comparedPeriod].every((one) => !one || (one.open?.total === 0 && one.opened === 0 && one.fixed === 0 && one.ignored === 0 && one.removed === 0));

function NoFindings() {
  const { slug: org = "" } = useDeployment();
  return (
    <Empty title={words.empty.title} actions={<Link to="/$org/setup" params={{ org }} className="text-accent underline">{words.empty.action}</Link>}>
      {words.empty.hint}
    </Empty>
  );
}

function Actions({ search, report }: { search: Search; report?: Report }) {
  const [scheduling, setScheduling] = useState(false);
  const [progress, setProgress] = useState<string>();
  const deploymentId = useDeployment().id ?? "";
  const mayManage = useMay("settings:manage");
  const toast = useToast();
  const period = periodOf(search);
  const findings = async () => {
    try {
      await saveFindings(deploymentId, requestOf(search).filters, period, (done, all) => setProgress(words.findingsCsvProgress(formatNumber(done), formatNumber(all))));
    } catch (error) {
      toast({ tone: "bad", text: error instanceof Error ? error.message : String(error) });
    } finally {
      setProgress(undefined);
    }
  };
  return (
    <>
      {progress && <span role="status" className="text-xs text-muted tabular-nums">{progress}</span>}
      <Button onClick={() => window.print()} disabled={!report}><Printer size={15} aria-hidden />{words.print}</Button>
      <Button title={words.csvHint} disabled={!report} onClick={() => report && save(`report-${lastDay(period)}.csv`, [reportCsv(report)])}>
        <Download size={15} aria-hidden />{words.csv}
      </Button>
      <Menu trigger={<Button>{words.more}</Button>}>
        <MenuItem onSelect={() => void findings()} disabled={progress !== undefined}>{words.findingsCsv}</MenuItem>
        {mayManage && <MenuItem onSelect={() => setScheduling(true)}>{words.schedule}</MenuItem>}
      </Menu>
      <ScheduleDialog open={scheduling} onClose={() => setScheduling(false)} filters={search.filters} />
    </>
  );
}
