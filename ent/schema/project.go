package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Project is a code repository, or a part of one.
type Project struct{ ent.Schema }

// Mixin of a project.
func (Project) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a project.
func (Project) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").NotEmpty(),
		field.String("name_key").NotEmpty().Comment("name in lower case, for case-insensitive lookups"),
		field.String("url").Default("").Comment("web URL of the repository, for display; an upload may have set it"),
		field.String("repository_url").Default("").Comment("web URL of the repository that Palisade reads and changes; empty: none"),
		field.String("bound_by").Default("").Comment("who set repository_url: sync, admin"),
		field.String("repository_id").Optional().Nillable().Comment("the host's id of the repository at repository_url; NULL: not known yet"),
		field.String("default_branch").Default("").Comment("full ref; empty when unknown"),
		field.String("primary_branch").Default("").Comment("full ref set by a person; empty: the default branch"),
		field.String("visibility").Default("unknown").Comment("public, private, unknown"),
		field.String("scm_type").Default("SCM_TYPE_UNKNOWN"),
		field.Bool("managed_diff_scan").Default(false),
		field.Bool("managed_full_scan").Default(false),
		timestamp("next_full_scan_at").Optional().Nillable().Comment("when the schedule starts the next full scan, if managed_full_scan; NULL: at once"),
		field.Bool("ai_full_scan").Default(false),
		timestamp("created_at").Immutable(),
		field.Int64("creator_id").Optional().Nillable().Immutable().Comment("the team-limited user whose upload created it"),
		timestamp("latest_scan_at").Optional().Nillable(),
		timestamp("archived_at").Optional().Nillable(),
		field.Bool("host_archived").Optional().Nillable().Comment("whether the host said last that the repository is archived; NULL: see archived_at"),
		timestamp("left_host_at").Optional().Nillable().Comment("when the host was found to list the repository no more; NULL: it lists it"),
		field.JSON("ignored_files", []string{}).Optional().Comment("paths that scans leave out, as patterns of a .gitignore file"),
		field.JSON("product_ignored_files", map[string][]string{}).Optional().Comment("further patterns, by product: sast, sca, secrets"),
		field.String("badge_key").Optional().Nillable().Sensitive().Comment("random part of the badge's URL; NULL: no badge"),
		field.Bytes("close_limits").Optional().Comment("palisade.scans.v1.CloseLimits; empty: those of the deployment"),
	}
}

// Indexes of a project.
func (Project) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "name").Unique().StorageKey("projects_by_name"),
		index.Fields("deployment_id", "name_key").StorageKey("projects_by_name_key"),
		index.Fields("deployment_id", "id").StorageKey("projects_list"),
		index.Fields("deployment_id", "scm_type", "id").StorageKey("projects_list_scm_type"),
		index.Fields("deployment_id", "archived_at", "id").StorageKey("projects_list_archived"),
		index.Fields("deployment_id", "latest_scan_at", "id").StorageKey("projects_list_scanned"),
		index.Fields("deployment_id", "repository_url", "id").StorageKey("projects_by_repository"),
		index.Fields("deployment_id", "repository_id").StorageKey("projects_by_repository_id").
			Annotations(entsql.IndexWhere("repository_id IS NOT NULL")),
		index.Fields("deployment_id", "left_host_at", "id").StorageKey("projects_left_host").
			Annotations(entsql.IndexWhere("left_host_at IS NOT NULL")),
		index.Fields("next_full_scan_at").StorageKey("projects_by_next_full_scan").
			Annotations(entsql.IndexWhere("managed_full_scan")),
		index.Fields("badge_key").StorageKey("projects_by_badge").Annotations(entsql.IndexWhere("badge_key IS NOT NULL")),
	}
}
