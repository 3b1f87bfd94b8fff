import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import { compareOf, periodOf, type Search } from "./period";

export type Overview = Schemas["reporting.v1.GetOverviewReportResponse"];
export type PeriodNumbers = Schemas["reporting.v1.GetOverviewReportResponse.Period"];

/** Everything that a report shows, each part as the API returned it. */
export interface Report {
  overview: Overview;
  backlog: Schemas["reporting.v1.GetBacklogBySeverityReportResponse"];
  activity: Schemas["reporting.v1.GetFindingsActivityReportResponse"];
  age: Schemas["reporting.v1.GetMedianOpenAgeBySeverityReportResponse"];
  timeToFix: Schemas["reporting.v1.GetTimeToFixReportResponse"];
  rules: Schemas["reporting.v1.GetBacklogByRuleReportResponse"];
}

/** The filters of a report's calls. */
export function requestOf(search: Search) {
  const period = periodOf(search);
  return { filters: { ...search.filters, timePeriod: period }, compareWith: compareOf(search, period) };
}

/** useReport reads the parts at the same time, and shows them together: a printed page never mixes two filters. */
export function useReport(search: Search) {
  const deploymentId = useDeployment().id ?? "";
  const { filters, compareWith } = requestOf(search);
  return useQuery({
    queryKey: ["report", deploymentId, filters, compareWith],
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    queryFn: async (): Promise<Report> => {
      const params = { path: { deploymentId } };
      const body = { filters };
      const [overview, backlog, activity, age, timeToFix, rules] = await Promise.all([
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/overview", { params, body: { filters, compareWith } })),
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/backlog/by-severity", { params, body })),
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/activity", { params, body })),
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/median-open-age/by-severity", { params, body })),
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/time-to-fix", { params, body })),
        unwrap(api.POST("/api/reporting/{deploymentId}/reports/backlog/by-rule", { params, body })),
      ]);
      return { overview, backlog, activity, age, timeToFix, rules };
    },
  });
}

/** The rules with the most open findings in the last bucket. */
export function topRules(report: Report["rules"], most: number): Array<{ name: string; open: number; before: number }> {
  const last = report.buckets.at(-1)?.open ?? {};
  const first = report.buckets[0]?.open ?? {};
  return Object.entries(last)
    .map(([name, open]) => ({ name, open, before: first[name] ?? 0 }))
    .sort((a, b) => b.open - a.open || a.name.localeCompare(b.name))
    .slice(0, most);
}
