import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";
import { useDeployment } from "@/api/session";
import type { Filters } from "./period";

export type Rule = Schemas["notifications.v1.NotificationRule"];
export type Cadence = Schemas["reporting.v1.ReportCadence"];
export type Schedule = Schemas["reporting.v1.ReportSchedule"];

/** A report by e-mail, as its form has it. */
export interface Draft {
  id?: number;
  name: string;
  to: string;
  cadence: Cadence;
  weekday: number;
  hour: number;
  zone: string;
  filters?: Filters;
  /** The rule that is changed. The form shows a part of it. */
  rule?: Rule;
}

const email = "CHANNEL_EMAIL";

/** draftOf is the form of a rule that sends a report. */
export const draftOf = (rule: Rule): Draft => ({
  id: rule.id,
  name: rule.name,
  to: rule.config.to ?? "",
  cadence: rule.send_report?.cadence ?? "REPORT_CADENCE_MONTHLY",
  weekday: rule.send_report?.weekday || 1,
  hour: rule.send_report?.hour ?? 0,
  zone: rule.send_report?.time_zone || "UTC",
  filters: rule.send_report?.filters,
  rule,
});

/** The rule with what the form says. A new one sends the report and nothing else. */
const inputOf = (draft: Draft): Schemas["notifications.v1.NotificationRuleInput"] => ({
  channel: email,
  name: draft.name,
  config: { to: draft.to },
  is_enabled: draft.rule?.is_enabled ?? true,
  policy_slugs: draft.rule?.policy_slugs,
  use_network_broker: draft.rule?.use_network_broker ?? false,
  // What is on by default is absent from the answer.
  send_findings: draft.rule ? (draft.rule.send_findings ?? true) : false,
  send_scan_completion: draft.rule?.send_scan_completion ?? false,
  send_held_closes: draft.rule?.send_held_closes ?? false,
  send_rule_alerts: draft.rule?.send_rule_alerts ?? false,
  send_freshness: draft.rule?.send_freshness ?? false,
  digest: draft.rule?.digest,
  quiet_hours: draft.rule?.quiet_hours,
  send_report: {
    cadence: draft.cadence,
    weekday: draft.cadence === "REPORT_CADENCE_WEEKLY" ? draft.weekday : 0,
    hour: draft.hour,
    time_zone: draft.zone,
    filters: draft.filters,
  },
});

/** useReportRules lists the e-mail rules that send a report, with what can be done about them. */
export function useReportRules(enabled: boolean) {
  const deploymentId = useDeployment().id ?? "";
  const queryClient = useQueryClient();
  const queryKey = ["report-rules", deploymentId];
  const path = { deploymentId };
  const refresh = () => queryClient.invalidateQueries({ queryKey });
  const list = useQuery({
    queryKey,
    enabled,
    queryFn: async () => {
      const answer = await unwrap(api.POST("/api/agent/deployments/{deploymentId}/actions/list", { params: { path }, body: { filters: { channel: email } } }));
      return answer.notification_rules.filter((rule) => rule.send_report);
    },
  });
  const save = useMutation({
    meta: { handlesErrors: true },
    mutationFn: (draft: Draft) => {
      const body = { notificationRule: inputOf(draft) };
      return draft.id === undefined
        ? unwrap(api.POST("/api/agent/deployments/{deploymentId}/actions", { params: { path }, body }))
        : unwrap(api.PUT("/api/agent/deployments/{deploymentId}/actions/{notificationRuleId}", { params: { path: { ...path, notificationRuleId: String(draft.id) } }, body }));
    },
    onSuccess: refresh,
  });
  const remove = useMutation({
    mutationFn: (id: number) =>
      unwrap(api.DELETE("/api/agent/deployments/{deploymentId}/actions/{notificationRuleId}", { params: { path: { ...path, notificationRuleId: String(id) } } })),
    onSuccess: refresh,
  });
  const test = useMutation({
    mutationFn: (id: number) =>
      unwrap(api.POST("/api/agent/deployments/{deploymentId}/actions/{notificationRuleId}/test", { params: { path: { ...path, notificationRuleId: String(id) } }, body: {} })),
    onSuccess: refresh,
  });
  return { list, save, remove, test };
}
