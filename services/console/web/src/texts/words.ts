// Words of the API as people read them. One word for one thing, on every screen.
export const words = {
  severity: { critical: "Critical", high: "High", medium: "Medium", low: "Low", info: "Info" },
  state: {
    open: "Open",
    reviewing: "Reviewing",
    fixing: "To fix",
    ignored: "Ignored",
    fixed: "Fixed",
    removed: "Removed",
    provisionally_ignored: "Provisionally ignored",
  },
  reason: {
    acceptable_risk: "Acceptable risk",
    false_positive: "False positive",
    no_time: "No time to fix",
    duplicate: "Duplicate",
    no_triage_reason: "No reason given",
  },
  role: { ADMIN: "Administrator", MEMBER: "Member", READONLY: "Read-only", IMPERSONATOR: "Impersonator" },
  product: { sast: "Code", sca: "Supply chain", secrets: "Secrets" },
};
