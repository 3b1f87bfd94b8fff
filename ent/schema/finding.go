package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Finding is a finding on one ref of a project. Values that are filtered, sorted or changed are columns; the rest is
// one protobuf blob. Rare attributes are nullable, so that their indexes contain only the rows that have them.
type Finding struct{ ent.Schema }

// Mixin of a finding.
func (Finding) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a finding.
func (Finding) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("rule_id"),
		field.Int64("first_seen_scan_id").Immutable(),
		field.Int64("last_seen_scan_id").Optional().Nillable().
			Comment("last full scan that reported it, once a later one that covers it did not; null: the latest one reported it"),
		field.String("ref").Immutable().Comment("full ref"),
		field.String("tool").Immutable(),
		field.String("analysis_category").Immutable().Comment("separates analyses of one tool and ref"),
		field.String("fingerprint").Comment("name of the identity; equal on all refs of the project, changed only by splits and merges"),
		field.Bytes("evidence").Optional().Nillable().Comment("identity.Evidence of its latest sighting; null until a scan or job computes it"),
		field.Int64("match_key").Optional().Nillable().Comment("strongest part of the evidence, for lookups across refs"),
		field.Int64("merged_into").Optional().Nillable().Comment("finding that it was merged into; a merged finding stays removed"),
		field.String("issue_type").Immutable().Comment("sast, sca, ai_sast, secrets"),
		field.String("severity").Comment("low, medium, high, critical"),
		field.String("state").Comment("unresolved, muted, fixed, removed"),
		field.String("triage_state").Default("untriaged"),
		field.String("status").Comment("derived from state and triage_state"),
		field.String("triage_reason").Optional().Nillable(),
		field.String("triage_comment").Optional().Nillable(),
		field.String("policy_mode").Optional().Nillable().Comment("rule-board-*; null: no policy covers it, so it is monitored"),
		field.String("autotriage_verdict").Optional().Nillable(),
		field.String("component_tag").Optional().Nillable(),
		field.String("exposure").Optional().Nillable(),
		field.String("transitivity").Optional().Nillable(),
		field.String("package").Optional().Nillable(),
		field.String("advisory").Optional().Nillable().Comment("identifier in capitals, for example a CVE"),
		field.String("file_path").Optional().Nillable().Comment("as in content; null if the scan named no file"),
		field.String("epss_probability").Optional().Nillable().Comment("low, medium, high, none"),
		field.Bool("malicious").Optional().Nillable().Comment("true or null"),
		field.String("click_to_fix_state").Optional().Nillable().Comment("open, merged"),
		field.String("validation_state").Optional().Nillable().Comment("secrets"),
		field.Bool("historical").Optional().Nillable().Comment("secrets of earlier commits: true or null"),
		timestamp("created_at").Immutable(),
		timestamp("relevant_since"),
		timestamp("state_updated_at"),
		timestamp("triaged_at").Optional().Nillable(),
		field.String("ignored_by_pattern").Optional().Nillable().
			Comment("policy pattern that its path matches: the policy mutes it; null: none, or a scan muted it"),
		field.Int64("content_hash").Comment("hash of content, severity and rule; detects whether a scan changed it"),
		field.Bytes("content").Comment("palisade.store.v1.FindingContent"),
	}
}

// Indexes of a finding, named after the query that uses them. Lists are ordered by (relevant_since, id). The columns
// after these two let a second filter reject rows without reading them.
func (Finding) Indexes() []ent.Index {
	rare := func(field string) ent.Index {
		return index.Fields("deployment_id", field, "relevant_since", "id", "issue_type", "status", "project_id").StorageKey("findings_list_" + field).
			Annotations(entsql.IndexWhere(field + " IS NOT NULL"))
	}
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "fingerprint", "ref", "analysis_category").Unique().StorageKey("findings_by_identity"),
		index.Fields("deployment_id", "project_id", "match_key").StorageKey("findings_by_evidence"),
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category", "state").StorageKey("findings_of_analysis"),
		// Findings that the latest full scan did not report. A scan that reports them again looks for them.
		index.Fields("deployment_id", "project_id", "ref", "tool", "analysis_category", "state", "last_seen_scan_id").StorageKey("findings_unseen").
			Annotations(entsql.IndexWhere("last_seen_scan_id IS NOT NULL")),
		// Findings that come back when their pattern goes.
		index.Fields("deployment_id", "id").StorageKey("findings_ignored_by_pattern").Annotations(entsql.IndexWhere("ignored_by_pattern IS NOT NULL")),
		index.Fields("deployment_id", "issue_type", "relevant_since", "id", "status").StorageKey("findings_list"),
		index.Fields("deployment_id", "issue_type", "status", "relevant_since", "id", "project_id").StorageKey("findings_list_status"),
		index.Fields("deployment_id", "issue_type", "severity", "relevant_since", "id", "status", "project_id").StorageKey("findings_list_severity"),
		index.Fields("deployment_id", "issue_type", "status", "severity", "relevant_since", "id", "project_id").StorageKey("findings_list_status_severity"),
		index.Fields("deployment_id", "project_id", "issue_type", "relevant_since", "id", "status", "severity", "ref").StorageKey("findings_list_project"),
		index.Fields("deployment_id", "ref", "issue_type", "relevant_since", "id", "status", "project_id").StorageKey("findings_list_ref"),
		index.Fields("deployment_id", "rule_id", "relevant_since", "id", "issue_type", "status", "project_id", "policy_mode").StorageKey("findings_list_rule_policy"),
		index.Fields("deployment_id", "first_seen_scan_id").StorageKey("findings_of_scan"),
		// Ignored findings for scanners: triage decisions always have a reason.
		index.Fields("deployment_id", "project_id", "triage_state").StorageKey("findings_decided").Annotations(entsql.IndexWhere("triage_reason IS NOT NULL")),
		// Covering index for the columns in memory, from which reports, lists, counts and groups are computed. New findings
		// are appended at its end, which is cheap.
		index.Fields("deployment_id", "id", "project_id", "rule_id", "ref", "issue_type", "severity", "state", "triage_state",
			"relevant_since", "triage_reason", "policy_mode", "autotriage_verdict", "exposure", "transitivity", "epss_probability",
			"malicious", "click_to_fix_state", "validation_state", "historical").StorageKey("findings_columns"),
		rare("triage_reason"), rare("policy_mode"), rare("autotriage_verdict"), rare("component_tag"), rare("exposure"),
		rare("transitivity"), rare("package"), rare("advisory"), rare("epss_probability"), rare("malicious"), rare("click_to_fix_state"),
		rare("validation_state"), rare("historical"),
	}
}
