package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// Token is an API token. Only the hash of its value is stored.
type Token struct{ ent.Schema }

// Mixin of a token.
func (Token) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a token.
func (Token) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("user_id").Immutable().Comment("creator, whose present role limits the token unless it belongs to the deployment"),
		field.String("name"),
		field.Bytes("hash").Immutable().Sensitive().Comment("SHA-256 of the value"),
		field.String("hint").Immutable().Comment("last four characters of the value"),
		field.Int64("parent_id").Optional().Nillable().Immutable().
			Comment("parent token, deleted together with this one; null if a user or the operator created it. No index: " +
				"tokens_list narrows a query to the few tokens of a deployment"),
		field.Int64("project_id").Optional().Nillable().Immutable().Comment("project whose CI uses the token; null for other tokens"),
		field.JSON("scopes", []string{}).Comment("web-api, agent, workflow-tasks, install-checks"),
		field.JSON("limited_scopes", []string{}).Optional().Comment("a token restricted to these cannot use the Web API"),
		field.String("role").Comment("ORG_ROLE_*"),
		timestamp("created_at").Immutable(),
		timestamp("expires_at").Optional().Nillable(),
		timestamp("last_used_at").Optional().Nillable().Comment("written at most once a minute"),
		timestamp("revoked_at").Optional().Nillable(),
		timestamp("handed_over_at").Optional().Nillable().
			Comment("since when it belongs to the deployment, so that only its own role limits it; null: its creator's role does, too"),
	}
}

// Indexes of a token.
func (Token) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("hash").Unique().StorageKey("tokens_by_hash"),
		index.Fields("deployment_id", "created_at").StorageKey("tokens_list"),
		index.Fields("deployment_id", "project_id").StorageKey("tokens_of_project").Annotations(entsql.IndexWhere("project_id IS NOT NULL")),
	}
}
