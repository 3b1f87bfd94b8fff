import { useInfiniteQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { api, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import { SeverityBadge } from "@/parts/badge";
import { Button } from "@/parts/button";
import { Failure, Loading } from "@/parts/states";
import { formatNumber } from "@/format";
import * as texts from "@/texts";
import type { Grouping } from "./fields";
import { clean, joinList, type Search, toRequest } from "./search";

const t = texts.triage;

/** Rules or projects with the numbers of their findings. A click shows the findings of one. */
export default function Groups({ search, by, set }: { search: Search; by: Grouping; set: (search: Search) => void }) {
  const deploymentId = useDeployment().id ?? "";
  const request = toRequest(search);
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["issue-groups", deploymentId, request, by, search.sort],
    initialPageParam: "",
    queryFn: ({ pageParam, signal }) =>
      unwrap(api.POST("/api/agent/deployments/{deploymentId}/issues/search", {
        params: { path: { deploymentId } },
        body: {
          ...request,
          groupBy: by === "project" ? "GROUP_BY_PROJECT" : "GROUP_BY_RULE",
          sortBy: search.sort === "severity" ? "SORT_BY_SEVERITY" : "SORT_BY_ISSUE_COUNTS",
          cursor: pageParam,
          limit: 100,
        },
        signal,
      })),
    getNextPageParam: (page) => page.cursor || undefined,
  });
  if (error) return <Failure error={error} retry={() => void refetch()} />;
  if (!data) return <Loading />;
  const groups = data.pages.flatMap((page) => [
    ...page.groups.map((one) => ({ id: one.ruleId, name: one.rulePath, hint: one.ruleMeta?.author ?? "", severity: one.severity, count: Number(one.issuesCount) })),
    ...(page.projectGroups ?? []).map((one) => ({ id: one.projectId, name: one.projectName, hint: "", severity: one.severity, count: Number(one.issuesCount) })),
  ]);
  const most = Math.max(1, ...groups.map((group) => group.count));
  return (
    <div className="min-h-0 grow overflow-y-auto">
      <ul className="mx-auto max-w-4xl px-4 pb-6">
        {groups.map((group) => (
          <li key={group.id} className="border-b border-line">
            <button
              type="button"
              aria-label={t.group.show(group.name)}
              onClick={() => set(clean({ ...search, group: undefined, [by]: joinList([group.name]) }))}
              className="grid min-h-11 w-full grid-cols-[5rem_1fr_6rem_4rem_1rem] items-center gap-3 rounded px-2 text-left hover:bg-sunken max-md:grid-cols-[5rem_1fr_4rem_1rem]"
            >
              <span><SeverityBadge severity={group.severity ?? ""} /></span>
              <span className="min-w-0">
                <span className="block truncate text-[0.8125rem] font-medium">{group.name}</span>
                {group.hint && <span className="block truncate text-xs text-muted">{group.hint}</span>}
              </span>
              <span className="h-1.5 overflow-hidden rounded-full bg-sunken max-md:hidden" aria-hidden>
                <span className="block h-full rounded-full bg-accent" style={{ width: `${(100 * group.count) / most}%` }} />
              </span>
              <span className="text-right tabular-nums">{formatNumber(group.count)}</span>
              <ChevronRight size={15} className="text-muted" aria-hidden />
            </button>
          </li>
        ))}
      </ul>
      {hasNextPage && <div className="flex justify-center pb-6"><Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>{texts.triage.changes.more}</Button></div>}
    </div>
  );
}
