package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PackageManagerConfig is a package registry for scans, with its credentials.
type PackageManagerConfig struct{ ent.Schema }

// Mixin of a package manager config.
func (PackageManagerConfig) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a package manager config.
func (PackageManagerConfig) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").NotEmpty(),
		field.String("url").Comment("registry URL, or a host pattern for a malware firewall"),
		field.Bool("requires_auth").Default(false),
		field.String("ecosystem").Comment("npm, maven, …; empty for a malware firewall"),
		field.Bool("use_network_broker").Default(false),
		field.Bytes("additional_config").Optional().Comment("palisade.supplychain.v1.AdditionalConfig"),
		field.String("registry_type").Comment("REGISTRY_TYPE_*"),
		field.String("credential_kind").Default("").Comment("maven, pypi, code_artifact, npm; empty for none"),
		field.Bytes("credentials").Optional().Sensitive().Comment("encrypted: palisade.supplychain.v1.PackageManagerConfigForInsert with only the credentials"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a package manager config.
func (PackageManagerConfig) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "name").Unique().StorageKey("package_manager_configs_by_name")}
}
