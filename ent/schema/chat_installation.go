package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ChatInstallation is the operator's chat app in the workspace of a deployment.
type ChatInstallation struct{ ent.Schema }

// Mixin of an installation.
func (ChatInstallation) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of an installation.
func (ChatInstallation) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("client_id").Comment("of the app, when it was installed"),
		field.String("app_id"),
		field.String("team_id"),
		field.String("team_name"),
		field.String("enterprise_id").Default(""),
		field.String("enterprise_name").Default(""),
		field.String("enterprise_url").Default(""),
		field.JSON("scopes", []string{}).Comment("that the workspace granted"),
		field.Bytes("token").Optional().Sensitive().Comment("encrypted: the bot token"),
		field.Bool("archived").Default(false).Comment("the chat refused the token"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of an installation.
func (ChatInstallation) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id").Unique().StorageKey("chat_installations_of_deployment"),
		index.Fields("team_id").StorageKey("chat_installations_of_team"),
	}
}
