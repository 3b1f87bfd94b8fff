package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// DependencyPackage is a package that dependencies of a deployment refer to. Filters by part of a name, ecosystem or
// licence read this table, because it has far fewer rows than Dependency. A row may outlive its last dependency.
type DependencyPackage struct{ ent.Schema }

// Mixin of a package.
func (DependencyPackage) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a package. The dependencies of the package have the same values.
func (DependencyPackage) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("ecosystem").Immutable(),
		field.String("package").Immutable(),
		field.String("license").Immutable().Default("").Comment("empty if the scanner reported none"),
	}
}

// Indexes of a package.
func (DependencyPackage) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "ecosystem", "package", "license").Unique().StorageKey("dependency_packages_by_name"),
	}
}
