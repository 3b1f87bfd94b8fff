package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Dependency is a package in a lockfile of a project, from the latest full scan of the project's primary branch.
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
		field.Bool("has_paths").Default(false).Comment("the scan reported the package's requirements, so paths to transitive dependencies are known"),
		field.String("license").Optional().Nillable().Comment("SPDX expressions joined by commas, if the scanner reported them"),
		field.Bytes("content").Comment("palisade.store.v1.DependencyContent"),
		timestamp("seen_at"),
	}
}

// Indexes of a dependency.
func (Dependency) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "lockfile", "ecosystem", "package", "version").Unique().StorageKey("dependencies_by_place"),
		index.Fields("deployment_id", "id").StorageKey("dependencies_list"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("dependencies_list_project"),
		// In list order, and with the project id: the index alone tells which projects have matching packages.
		index.Fields("deployment_id", "lockfile", "id", "project_id").StorageKey("dependencies_by_lockfile"),
		index.Fields("deployment_id", "ecosystem", "id", "project_id").StorageKey("dependencies_by_ecosystem"),
		index.Fields("deployment_id", "package", "id", "project_id", "ecosystem", "version").StorageKey("dependencies_by_package"),
		index.Fields("deployment_id", "version", "id", "project_id").StorageKey("dependencies_by_version"),
		index.Fields("deployment_id", "transitivity", "id", "project_id").StorageKey("dependencies_by_transitivity"),
	}
}
