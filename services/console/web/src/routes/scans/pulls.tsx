import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ExternalLink } from "lucide-react";
import { useDeployment } from "@/api/session";
import { formatNumber, safeLink } from "@/format";
import { Badge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { More } from "@/parts/more";
import { Empty, Failure, Loading } from "@/parts/states";
import { StackedTd, Table, Th } from "@/parts/table";
import { When } from "@/parts/when";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { parseSearch } from "./search";
import { pullsQuery } from "./calls";
import { ProjectFilter } from "./filters";
import { StatusBadge } from "./state";

const t = texts.scans.pulls;

/** The pull requests that were scanned, the latest scan first. */
export function PullRequestList() {
  const { id = "", slug = "" } = useDeployment();
  const search = useParsed(parseSearch, useSearch({ from: "/$org/scans" }));
  const navigate = useNavigate({ from: "/$org/scans" });
  const setProject = (project: string | undefined) => void navigate({ search: (before) => ({ ...before, project }), replace: true });
  const query = useInfiniteQuery(pullsQuery(id, search.project));
  const rows = query.data?.pages.flatMap((page) => page.pull_requests) ?? [];
  return (
    <div className="flex flex-col gap-3">
      <ProjectFilter project={search.project} onChange={setProject} />
      {query.isError ? (
        <Failure error={query.error} retry={() => void query.refetch()} />
      ) : query.isPending ? (
        <Loading />
      ) : rows.length === 0 ? (
        search.project ? (
          <Empty title={texts.scans.freshness.emptyFiltered} actions={<Button onClick={() => setProject(undefined)}>{texts.scans.freshness.clear}</Button>}>{texts.scans.freshness.emptyFilteredHint}</Empty>
        ) : (
          <Empty title={t.empty}>{t.emptyHint}</Empty>
        )
      ) : (
        <Table
          stacked
          label={t.table}
          head={
            <>
              <Th>{t.number}</Th>
              <Th>{t.author}</Th>
              <Th>{t.status}</Th>
              <Th number>{t.results}</Th>
              <Th>{t.scanned}</Th>
            </>
          }
        >
          {rows.map((row) => {
            const link = safeLink(row.url);
            return (
              <tr key={`${row.project_id} ${row.number}`} className="hover:bg-sunken/60">
                <StackedTd className="min-w-56 max-md:!block">
                  <Link to="/$org/pull-requests" params={{ org: slug }} search={{ project: row.project, number: row.number }} className="font-medium wrap-anywhere hover:text-accent hover:underline">
                    {row.title || t.untitled(String(row.number))}
                  </Link>
                  <div className="flex items-center gap-1.5 text-muted">
                    <span className="wrap-anywhere">{row.project}</span>
                    <span className="tabular-nums">#{row.number}</span>
                    {link && (
                      <a href={link} target="_blank" rel="noopener noreferrer" className="hover:text-accent" aria-label={texts.pullRequest.host}>
                        <ExternalLink size={13} aria-hidden />
                      </a>
                    )}
                  </div>
                </StackedTd>
                <StackedTd label={t.author}><span className="min-w-0 wrap-anywhere">{row.author || "–"}</span></StackedTd>
                <StackedTd label={t.status}>
                  {row.status === "SCAN_STATUS_COMPLETED" ? <Badge tone={row.blocked ? "bad" : "good"}>{row.blocked ? t.blocked : t.passed}</Badge> : <StatusBadge status={row.status} />}
                </StackedTd>
                <StackedTd label={t.results} number>{formatNumber(row.results)}</StackedTd>
                <StackedTd label={t.scanned}><When at={row.scanned_at} /></StackedTd>
              </tr>
            );
          })}
        </Table>
      )}
      <More query={query} label={t.more} />
    </div>
  );
}
