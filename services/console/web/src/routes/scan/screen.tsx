import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { ChevronLeft, OctagonX } from "lucide-react";
import { api, type Schemas, unwrap } from "@/api/client";
import { isId } from "@/api/id";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { Card, Page } from "@/parts/page";
import { refName } from "@/parts/ref";
import { Empty, Failure, Loading } from "@/parts/states";
import { StatusBadge } from "@/routes/scans/state";
import { joinList } from "@/routes/triage/search";
import * as texts from "@/texts";
import { Analyses } from "./analyses";
import { Facts } from "./facts";
import { Runs, Skipped } from "./runs";

export type Details = Schemas["scans.v1.GetScanDetailsResponse"];

const t = texts.scans.scan;

const detailsQuery = (deploymentId: string, scanId: string) =>
  queryOptions({
    queryKey: ["scan", deploymentId, scanId],
    queryFn: ({ signal }) => (isId(scanId) ? unwrap(api.GET("/api/v1/deployments/{deploymentId}/scans/{scanId}/details", { params: { path: { deploymentId, scanId } }, signal })) : null),
  });

/** One scan: what it did to findings, what it covered, and the answer to its upload line by line. */
export default function ScanScreen() {
  const { id = "", slug = "" } = useDeployment();
  const { scanId } = useParams({ from: "/$org/scans/$scanId" });
  const query = useQuery(detailsQuery(id, scanId));
  const back = <BackLink org={slug} />;
  if (query.isError) return <Page title={t.title(scanId)} intro={back}><Failure error={query.error} retry={() => void query.refetch()} /></Page>;
  if (query.isPending) return <Loading />;
  const scan = query.data;
  if (!scan) return <Page title={t.title(scanId)} intro={back}><Empty title={texts.shell.states.notFoundTitle}>{texts.shell.states.notFoundHint}</Empty></Page>;
  return (
    <Page
      title={t.title(scanId)}
      actions={
        <Link to="/$org/triage" params={{ org: slug }} search={{ project: joinList([scan.project]), ref: joinList([scan.ref]) }} className="text-accent hover:underline">
          {t.findings(refName(scan.ref))}
        </Link>
      }
      intro={
        <span className="flex flex-wrap items-center gap-2">
          {back}
          <StatusBadge status={scan.status} />
          <span>{scan.is_upload ? t.upload : t.scanner}</span>
        </span>
      }
    >
      <div className="flex flex-col gap-4">
        {scan.blocked && (
          <div className="flex gap-2 rounded-lg border border-bad/30 bg-bad/10 px-4 py-3">
            <OctagonX size={18} className="mt-0.5 shrink-0 text-bad" aria-hidden />
            <div>
              <p className="font-semibold text-bad">{t.blocked}</p>
              <p className="wrap-anywhere">{scan.block_reason}</p>
            </div>
          </div>
        )}
        {scan.errors.length > 0 && (
          <Card title={t.errors}>
            <ul className="list-disc pl-5">{scan.errors.map((one) => <li key={one} className="wrap-anywhere">{one}</li>)}</ul>
          </Card>
        )}
        <Effects scan={scan} />
        <Facts scan={scan} org={slug} />
        {scan.answer ? (
          <>
            <Runs answer={scan.answer} />
            <Skipped answer={scan.answer} />
          </>
        ) : (
          scan.is_upload && <p className="text-muted">{t.notKept}</p>
        )}
        <Analyses analyses={scan.analyses} />
      </div>
    </Page>
  );
}

function BackLink({ org }: { org: string }) {
  return (
    <Link to="/$org/scans" params={{ org }} search={{ tab: "list" }} className="inline-flex items-center text-accent hover:underline">
      <ChevronLeft size={15} aria-hidden /> {t.back}
    </Link>
  );
}

const tones: Partial<Record<keyof typeof t.effect, string>> = { created: "text-high", reopened: "text-high", fixed: "text-good", skipped: "text-warn", heldCloses: "text-warn" };

/** The numbers of the answer. A zero is muted, so that what happened stands out. */
function Effects({ scan }: { scan: Details }) {
  const e = scan.effects;
  const numbers: Array<[keyof typeof t.effect, number]> = [
    ["created", e.created ?? 0], ["updated", e.updated ?? 0], ["unchanged", e.unchanged ?? 0], ["reopened", e.reopened ?? 0],
    ["fixed", e.fixed ?? 0], ["removed", e.removed ?? 0], ["skipped", e.skipped ?? 0], ["heldCloses", e.held_closes ?? 0],
  ];
  return (
    <section aria-label={t.effects}>
      <dl className="grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4 xl:grid-cols-8">
        {numbers.map(([name, count]) => (
          <div key={name} className="flex flex-col-reverse bg-surface px-3 py-2">
            <dt className="text-xs text-muted">{t.effect[name]}</dt>
            <dd className={`text-xl font-semibold tabular-nums ${count === 0 ? "text-muted" : (tones[name] ?? "")}`}>{formatNumber(count)}</dd>
          </div>
        ))}
      </dl>
      {(e.newer_scan_id ?? 0) > 0 && <p className="mt-2 text-warn">{t.older}</p>}
    </section>
  );
}
