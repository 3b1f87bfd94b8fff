package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// RuleDocument is a rule that the deployment's scanners run. Rule has the rules that findings refer to.
type RuleDocument struct{ ent.Schema }

// Mixin of a rule document.
func (RuleDocument) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a rule document.
func (RuleDocument) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").Immutable().Comment("id of the rule in its document"),
		field.String("origin").Comment("starter, import, publish"),
		field.String("product").Comment("sast, sca, secrets"),
		field.String("severity").Comment("as in the document"),
		field.JSON("languages", []string{}),
		field.String("mode").Comment("monitor, comment, block, off"),
		field.String("visibility").Default("org_private").Comment("org_private, unlisted, public"),
		field.Int32("version").Comment("version of its newest document, from 1"),
		field.Int32("proven_version").Default(0).Comment("a scan ran this version, or a person released it: reports do not quarantine it; 0: none"),
		field.Int32("quarantined_version").Default(0).Comment("scans do not get this version, because it breaks scanners; 0: none"),
		field.String("quarantine_reason").Default("").Comment("what the scanner said"),
		field.Int64("quarantine_scan_id").Default(0).Comment("the scan that reported it"),
		timestamp("quarantined_at").Optional().Nillable(),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a rule document.
func (RuleDocument) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "name").Unique().StorageKey("rule_documents_by_name"),
		index.Fields("deployment_id", "product", "mode", "id").StorageKey("rule_documents_of_product"),
		index.Fields("deployment_id", "product").StorageKey("rule_documents_unproven").Annotations(entsql.IndexWhere("proven_version < version")),
		index.Fields("deployment_id", "name").StorageKey("rule_documents_quarantined").Annotations(entsql.IndexWhere("quarantined_version = version")),
	}
}

// RuleVersion is one version of a rule's document. Versions are immutable.
type RuleVersion struct{ ent.Schema }

// Mixin of a rule version.
func (RuleVersion) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a rule version.
func (RuleVersion) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("rule_document_id").Immutable(),
		field.Int32("version").Immutable().Comment("from 1"),
		field.Bytes("digest").Immutable().Comment("SHA-256 of the document"),
		field.Bytes("document").Immutable().Comment("the rule as JSON, one object"),
		field.String("actor_kind").Immutable(),
		field.Int64("actor_id").Immutable(),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a rule version.
func (RuleVersion) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "rule_document_id", "version").Unique().StorageKey("rule_versions_of_rule")}
}

// RuleAlias maps a former name of a tool's rule to its present name, so that its findings keep their identity.
type RuleAlias struct{ ent.Schema }

// Mixin of a rule alias.
func (RuleAlias) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a rule alias.
func (RuleAlias) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("tool").Immutable(),
		field.String("name").Immutable().Comment("the former name"),
		field.String("canonical").Comment("the present name, which is never an alias"),
		field.String("source").Comment("user, report (the tool declared it)"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a rule alias.
func (RuleAlias) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "tool", "name").Unique().StorageKey("rule_aliases_by_name"),
		index.Fields("deployment_id", "tool", "canonical").StorageKey("rule_aliases_of_rule"),
	}
}
