package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Deployment is an organization: the tenant that owns everything else.
type Deployment struct{ ent.Schema }

// Fields of a deployment.
func (Deployment) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("slug").NotEmpty().Immutable(),
		field.String("name").NotEmpty(),
		// The column keeps its default: changing it would make SQLite rebuild the table. Nothing
		// relies on the default, since every INSERT sets the role.
		field.String("default_role").Default("ORG_ROLE_MEMBER").Annotations(entsql.Default("ORG_ROLE_ADMIN")).
			Comment("ORG_ROLE_* of new users"),
		field.Bool("triage_via_comment").Default(false).Comment("replies to review comments triage findings"),
		field.Bool("pull_request_statuses").Default(false).Comment("write commit statuses of pull requests at their host"),
		field.Bool("pull_request_comments").Default(false).Comment("write a comment on pull requests at their host"),
		field.Int32("pull_request_line_comments").Default(0).Comment("how many findings of a pull request get a comment on their line"),
		field.Bool("cross_file_analysis").Default(false).Comment("has_deepsemgrep in the contract"),
		// The column keeps its default, as default_role does.
		field.Bool("dependency_query").Default(true).Annotations(entsql.Default("false")).
			Comment("scanners ask this server about dependencies"),
		field.Bytes("products").Optional().Comment("palisade.deployments.v1.DeploymentProductConfig; empty: the defaults"),
		field.Bytes("close_limits").Optional().Comment("palisade.scans.v1.CloseLimits; empty: the defaults"),
		field.Int64("catalog_revision").Default(0).Comment("incremented when fields of rules or projects that findings show change"),
		timestamp("policies_migrated_at").Optional().Nillable().Comment("when it moved to detection policies; null: it has not"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a deployment.
func (Deployment) Indexes() []ent.Index {
	return []ent.Index{index.Fields("slug").Unique().StorageKey("deployments_by_slug")}
}
