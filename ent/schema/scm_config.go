package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/palisade/palisade/ent/column"
)

// ScmConfig connects a deployment to an organization or group at a source-code host.
type ScmConfig struct{ ent.Schema }

// Mixin of a source-code host connection.
func (ScmConfig) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a source-code host connection.
func (ScmConfig) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("type").Comment("SCM_TYPE_*"),
		field.String("namespace").NotEmpty(),
		field.String("source_id").Default(""),
		field.String("base_url").Comment("without a trailing slash"),
		field.String("scm_id").Default("").Comment("id of the namespace at the host"),
		field.Int64("scm_app_id").Optional().Nillable(),
		field.Bytes("access_token").Optional().Sensitive().Comment("encrypted: credential at the host"),
		field.Bool("installed").Default(false),
		field.Bool("suspended").Default(false),
		field.String("entity_type").Default("").Comment("ORG, USER; empty when unknown"),
		field.Bool("auto_scan").Default(false),
		field.Bool("diff_enabled").Default(false),
		field.Bool("use_network_broker").Default(false),
		timestamp("checked_at").Optional().Nillable(),
		field.Bool("check_ok").Default(false),
		field.String("check_error").Default(""),
		field.Bytes("token_scopes").Optional().Comment("palisade.scm.v1.ScmTokenScopes"),
		timestamp("last_successful_sync_at").Optional().Nillable(),
		field.String("webhook_key").Default("").Comment("last part of its webhook URL; empty before the first subscription"),
		field.Bytes("webhook_secret").Optional().Sensitive().Comment("encrypted: webhook secret"),
		field.Bytes("previous_webhook_secret").Optional().Sensitive().Comment("encrypted: previous secret, accepted for 24 hours after a rotation"),
		timestamp("webhook_rotated_at").Optional().Nillable(),
		field.JSON("subscriptions", []column.ScmSubscription{}).Optional().Comment("webhooks as the host last reported them"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a source-code host connection.
func (ScmConfig) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "type", "base_url", "namespace").Unique().StorageKey("scm_configs_by_namespace"),
		index.Fields("deployment_id", "namespace", "id").StorageKey("scm_configs_by_name"),
		index.Fields("deployment_id", "last_successful_sync_at", "id").StorageKey("scm_configs_by_sync"),
		index.Fields("webhook_key").StorageKey("scm_configs_by_webhook"),
	}
}
