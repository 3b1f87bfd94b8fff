import { clean, joinList, type Search as TriageSearch } from "@/routes/triage/search";
import type { Filters, Period } from "./period";

/** What reports count as open: what nobody has fixed or ignored. */
const open = "open,reviewing,fixing";

const types: Record<string, string[]> = { FINDING_TYPE_CODE: ["sast", "ai_sast"], FINDING_TYPE_SCA: ["sca"], FINDING_TYPE_SECRETS: ["secrets"] };

/**
 * The conditions of triage that list the findings which a report counts as open; undefined for a day of the past, and for
 * filters that triage does not have.
 */
export function inTriage(filters: Filters | undefined, period: Period, now = Date.now()): TriageSearch | undefined {
  if (Date.parse(period.until) <= now) return undefined;
  const { findingSeverities, findingTypes, projects, tags, teams, ...others } = filters ?? {};
  if (Object.values(others).some((value) => Array.isArray(value) && value.length > 0)) return undefined;
  return clean({
    state: open,
    severity: joinList((findingSeverities ?? []).map((one) => one.replace("FINDING_SEVERITY_", "").toLowerCase())),
    type: joinList((findingTypes ?? []).flatMap((one) => types[one] ?? [])),
    project: joinList(projects ?? []),
    tag: joinList(tags ?? []),
    team: joinList(teams ?? []),
  });
}
