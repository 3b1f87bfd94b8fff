package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Dependency is a package that a lockfile of a project names, as the latest full scan of its primary branch saw it.
type Dependency struct{ ent.Schema }

// Mixin of a dependency.
func (Dependency) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a dependency.
func (Dependency) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("scan_id"),
		field.String("lockfile").Immutable().Comment("path in the repository"),
		field.String("ecosystem").Immutable().Comment("contract's word: npm, pypi, gomod, …"),
		field.String("package").Immutable(),
		field.String("version").Immutable(),
		field.String("transitivity").Comment("direct, transitive, unknown"),
		field.String("license").Optional().Nillable().Comment("SPDX expressions joined by a comma, where the scanner names them"),
		field.Bytes("content").Comment("palisade.store.v1.DependencyContent"),
		timestamp("seen_at"),
	}
}

// Indexes of a dependency.
func (Dependency) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "lockfile", "ecosystem", "package", "version").Unique().StorageKey("dependencies_by_place"),
		index.Fields("deployment_id", "ecosystem", "package", "version", "id").StorageKey("dependencies_by_package"),
		index.Fields("deployment_id", "package", "id").StorageKey("dependencies_by_name"),
		index.Fields("deployment_id", "license", "id").StorageKey("dependencies_by_license").Annotations(entsql.IndexWhere("license IS NOT NULL")),
	}
}
