package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ScmApp is an application registered at a source-code host, or a pending registration.
type ScmApp struct{ ent.Schema }

// Mixin of a source-code host application.
func (ScmApp) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a source-code host application.
func (ScmApp) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("request_id").Immutable().Comment("random; identifies the request during the registration"),
		field.String("state").Comment("pending, complete"),
		field.String("scm_type").Immutable().Comment("SCM_TYPE_*"),
		field.String("base_url").Immutable(),
		field.String("namespace").Immutable(),
		field.String("entity_type").Immutable().Default("").Comment("ORG, USER; empty when unknown"),
		field.Int64("scm_config_id").Immutable().Optional().Nillable(),
		field.Int64("created_by").Immutable().Comment("user"),
		field.String("slug").Default(""),
		field.String("app_id").Default("").Comment("the host's id"),
		field.String("name").Default(""),
		field.Bool("code_access").Default(false),
		field.String("tenant_id").Default(""),
		field.String("client_id").Default(""),
		field.String("installation_id").Default("").Comment("the host's id of the installation in the namespace; empty: not installed"),
		field.Bool("suspended").Default(false).Comment("the host suspended that installation"),
		timestamp("installation_at").Optional().Nillable().Comment("time of the latest event about the installation"),
		field.Bytes("client_secret").Optional().Sensitive().Comment("encrypted: client secret of the application"),
		field.Bytes("private_key").Optional().Sensitive().Comment("encrypted: PEM"),
		field.String("webhook_key").Default(""),
		field.Bytes("webhook_secret").Optional().Sensitive().Comment("encrypted: webhook secret"),
		field.Bytes("previous_webhook_secret").Optional().Sensitive().Comment("encrypted: previous secret, accepted for 24 hours after a rotation"),
		timestamp("webhook_rotated_at").Optional().Nillable(),
		timestamp("created_at").Immutable(),
		timestamp("expires_at").Immutable().Comment("expiry of a pending request"),
		timestamp("completed_at").Optional().Nillable(),
	}
}

// Indexes of a source-code host application.
func (ScmApp) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("request_id").Unique().StorageKey("scm_apps_by_request"),
		index.Fields("deployment_id", "id").StorageKey("scm_apps_list"),
		index.Fields("webhook_key").StorageKey("scm_apps_by_webhook"),
	}
}
