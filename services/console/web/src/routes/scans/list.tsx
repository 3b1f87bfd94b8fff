import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useDeployment } from "@/api/session";
import { formatAgo, formatNumber } from "@/format";
import { Button } from "@/parts/button";
import { formatSeconds } from "@/parts/duration";
import { Checkbox } from "@/parts/field";
import { More } from "@/parts/more";
import { productName } from "@/parts/product";
import { Ref } from "@/parts/ref";
import { Empty, Failure, Loading } from "@/parts/states";
import { StackedTd, Table, Th } from "@/parts/table";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { parseSearch } from "./search";
import { scansQuery, type ScanRow } from "./calls";
import { ProjectFilter, TextFilter } from "./filters";
import type { ScansSearch } from "./search";
import { StatusBadge } from "./state";

const t = texts.scans.list;

/** The scans of the last 30 days, the newest first. */
export function ScanList() {
  const deployment = useDeployment();
  const { slug = "" } = deployment;
  const search = useParsed(parseSearch, useSearch({ from: "/$org/scans" }));
  const navigate = useNavigate({ from: "/$org/scans" });
  const query = useInfiniteQuery(scansQuery(deployment, search));
  const change = (next: Partial<ScansSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), replace: true });
  const rows = query.data?.pages.flatMap((page) => page.scans) ?? [];
  const filtered = Boolean(search.project || search.branch || search.full || search.problems);
  return (
    <div className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-x-4 gap-y-2">
        <ProjectFilter project={search.project} onChange={(project) => change({ project })} />
        <TextFilter label={t.branch} hint={t.branchHint} value={search.branch} onChange={(branch) => change({ branch })} />
        <Checkbox label={t.fullOnly} className="min-h-8" checked={search.full ?? false} onChange={(event) => change({ full: event.target.checked || undefined })} />
        <Checkbox label={t.problems} className="min-h-8" checked={search.problems ?? false} onChange={(event) => change({ problems: event.target.checked || undefined })} />
      </div>
      {query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Loading />
      ) : rows.length === 0 ? (
        filtered ? (
          <Empty title={texts.scans.freshness.emptyFiltered} actions={<Button onClick={() => change({ project: undefined, branch: undefined, full: undefined, problems: undefined })}>{texts.scans.freshness.clear}</Button>}>
            {texts.scans.freshness.emptyFilteredHint}
          </Empty>
        ) : (
          <Empty title={t.empty}>{t.emptyHint}</Empty>
        )
      ) : (
        <Table
          stacked
          label={t.table}
          head={
            <>
              <Th>{t.started}</Th>
              <Th>{t.project}</Th>
              <Th>{t.ref}</Th>
              <Th>{t.status}</Th>
              <Th>{t.kind}</Th>
              <Th>{t.products}</Th>
              <Th number>{t.results}</Th>
              <Th number>{t.duration}</Th>
            </>
          }
        >
          {rows.map((row) => <Row key={row.id} row={row} org={slug} />)}
        </Table>
      )}
      <More query={query} label={t.more} />
    </div>
  );
}

function Row({ row, org }: { row: ScanRow; org: string }) {
  return (
    <tr className="hover:bg-sunken/60">
      <StackedTd className="max-md:font-medium">
        <Link
          to="/$org/scans/$scanId"
          params={{ org, scanId: row.id }}
          className="text-accent hover:underline"
          aria-label={t.open(row.project, formatAgo(row.started_at))}
        >
          <When at={row.started_at} />
        </Link>
      </StackedTd>
      <StackedTd label={t.project} className="font-medium md:max-w-64" title={row.project}><span className="min-w-0 truncate md:block">{row.project}</span></StackedTd>
      <StackedTd label={t.ref} className="md:max-w-56"><span className="min-w-0"><Ref name={row.branch} /></span></StackedTd>
      <StackedTd label={t.status}><StatusBadge status={row.status} /></StackedTd>
      <StackedTd label={t.kind} className="whitespace-nowrap">{row.is_full_scan ? t.full : t.diff}</StackedTd>
      <StackedTd label={t.products} className="whitespace-nowrap">{row.enabled_products.map(productName).join(", ") || "–"}</StackedTd>
      <StackedTd label={t.results} number>{formatNumber(Number(row.findings_counts.total))}</StackedTd>
      <StackedTd label={t.duration} number>{formatSeconds(row.total_time)}</StackedTd>
    </tr>
  );
}
