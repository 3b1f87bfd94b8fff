package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// FindingEvent is one change of a finding. History, audit, reports and notifications read it.
type FindingEvent struct{ ent.Schema }

// Mixin of a finding event.
func (FindingEvent) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a finding event.
func (FindingEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("finding_id").Immutable(),
		field.String("kind").Immutable().Comment("created, updated, reopened, fixed, removed, muted, unmuted, triaged, triage_spread, triage_inherited, noted, matched, split, merged, identity_undone, close_rejected, triage_undone, exception_requested, exception_approved, exception_rejected, ticket_created, ticket_attempted, ticket_linked, ticket_unlinked"),
		field.String("from_status").Immutable().Comment("empty for created"),
		field.String("to_status").Immutable(),
		field.String("reason").Immutable().Default("").Comment("triage reason, or the reason of the change by a scan"),
		field.String("note").Immutable().Default(""),
		field.String("actor_kind").Immutable().Comment("scan, user, token, host (a source-code host's webhook), policy"),
		field.Int64("actor_id").Immutable().Comment("id of the scan, user or token; 0 for a host"),
		field.String("actor_name").Immutable().Default("").Comment("login of the person at the host; empty for other kinds"),
		field.Int64("scan_id").Immutable().Optional().Nillable(),
		timestamp("at").Immutable(),
		// PostgreSQL writes it: rows are not visible in the order of their ids there. The migration adds the column
		// before its default, so that existing rows keep null and the table is not rewritten.
		field.Int64("tx").Optional().Nillable().Immutable().Annotations(entsql.DefaultExprs(map[string]string{
			dialect.Postgres: "((pg_current_xact_id())::text)::bigint",
		})).Comment("number of the transaction that wrote it; null on SQLite and in rows from before the column"),
	}
}

// Indexes of a finding event.
func (FindingEvent) Indexes() []ent.Index {
	return []ent.Index{
		// Covering index for reports: they replay events without reading the rows.
		index.Fields("deployment_id", "finding_id", "id", "at", "to_status").StorageKey("finding_events_of_finding"),
		index.Fields("deployment_id", "at").StorageKey("finding_events_by_time"),
		// The change feed reads the events of transactions that were not committed at the last reading.
		index.Fields("deployment_id", "tx", "id").StorageKey("finding_events_feed"),
	}
}
