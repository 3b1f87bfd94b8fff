import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { CircleCheck } from "lucide-react";
import { useDeployment } from "@/api/session";
import { formatNumber } from "@/format";
import { Button } from "@/parts/button";
import { cx } from "@/parts/cx";
import { More } from "@/parts/more";
import { Empty, Failure, Loading } from "@/parts/states";
import * as texts from "@/texts";
import { useParsed } from "@/shell/use-parsed";
import { freshnessQuery, summaryQuery } from "./calls";
import { FreshnessTable } from "./freshness-table";
import { ProjectFilter, ToolFilter } from "./filters";
import { freshnessStates, type ScansSearch, parseSearch } from "./search";
import { Versions } from "./versions";

const t = texts.scans.freshness;

const tileTones = { silent: "text-critical", failing: "text-bad", late: "text-warn", shrunk: "text-warn", ok: "text-good" };

/** What has gone silent, failed, is late or shrank, the worst first. */
export function FreshnessBoard() {
  const { id = "", slug = "" } = useDeployment();
  const search = useParsed(parseSearch, useSearch({ from: "/$org/scans" }));
  const navigate = useNavigate({ from: "/$org/scans" });
  const summary = useQuery(summaryQuery(id, search.project));
  const query = useInfiniteQuery(freshnessQuery(id, search));
  const change = (next: Partial<ScansSearch>) => void navigate({ search: (before) => ({ ...before, ...next }), replace: true });

  const rows = query.data?.pages.flatMap((page) => page.freshness) ?? [];
  const filtered = Boolean(search.state || search.project || search.tool);
  if (summary.data?.states.length === 0 && !search.project) {
    return (
      <Empty title={t.empty} actions={<Link to="/$org/setup" params={{ org: slug }} className="text-accent underline">{t.setUp}</Link>}>
        {t.emptyHint}
      </Empty>
    );
  }
  return (
    <div className="grid gap-4 lg:grid-cols-[minmax(0,1fr)_17rem]">
      <div className="flex min-w-0 flex-col gap-3">
        <ul className="grid grid-cols-3 gap-2 sm:grid-cols-5">
          {freshnessStates.map((state) => {
            const count = summary.data?.states.find((one) => one.state === state)?.analyses ?? 0;
            const chosen = search.state === state;
            return (
              <li key={state}>
                <button
                  type="button"
                  aria-pressed={chosen}
                  title={texts.scans.stateHint[state]}
                  onClick={() => change({ state: chosen ? undefined : state })}
                  className={cx(
                    "flex w-full flex-col rounded-lg border bg-surface px-3 py-2 text-left transition-colors hover:border-line-strong",
                    chosen ? "border-accent ring-1 ring-accent" : "border-line",
                  )}
                >
                  <span className={cx("text-xl font-semibold tabular-nums", count > 0 ? tileTones[state] : "text-muted")}>
                    {summary.data ? formatNumber(count) : "–"}
                  </span>
                  <span className="text-xs text-muted">{texts.scans.state[state]}</span>
                </button>
              </li>
            );
          })}
        </ul>
        <div className="flex flex-wrap items-end gap-2">
          <ProjectFilter project={search.project} onChange={(project) => change({ project })} />
          {search.tool && <ToolFilter tool={search.tool} version={search.version} onClear={() => change({ tool: undefined, version: undefined })} />}
          {filtered && <Button look="quiet" onClick={() => change({ state: undefined, project: undefined, tool: undefined, version: undefined })}>{t.clear}</Button>}
        </div>
        {!filtered && summary.data?.states.every((one) => one.state === "ok") && (
          <p className="flex items-center gap-2 rounded-lg border border-good/25 bg-good/10 px-3 py-2 text-good">
            <CircleCheck size={16} aria-hidden /> {t.allGood}
          </p>
        )}
        {query.isError ? (
          <Failure error={query.error} retry={() => void query.refetch()} />
        ) : query.isPending ? (
          <Loading />
        ) : rows.length === 0 ? (
          <Empty title={t.emptyFiltered}>{t.emptyFilteredHint}</Empty>
        ) : (
          <FreshnessTable rows={rows} org={slug} />
        )}
        <More query={query} label={texts.scans.list.more} />
      </div>
      <Versions
        versions={summary.data?.versions ?? []}
        chosen={search.tool ? { tool: search.tool, version: search.version } : undefined}
        onChoose={(tool, version) => change({ tool, version })}
      />
    </div>
  );
}
