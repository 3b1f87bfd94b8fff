package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// DependencyPackage is a package that some dependency of a deployment is of: what a part of a name, an ecosystem or a
// licence is looked up in, because there are few packages, and many dependencies. It may be there longer than the last
// of them.
type DependencyPackage struct{ ent.Schema }

// Mixin of a package.
func (DependencyPackage) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a package. They are those of its dependencies.
func (DependencyPackage) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("ecosystem").Immutable(),
		field.String("package").Immutable(),
		field.String("license").Immutable().Default("").Comment("empty where the scanner names none"),
	}
}

// Indexes of a package.
func (DependencyPackage) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "ecosystem", "package", "license").Unique().StorageKey("dependency_packages_by_name"),
	}
}
