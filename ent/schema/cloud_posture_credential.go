package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// CloudPostureCredential is an OAuth 2.0 client of a deployment at a cloud-posture tool.
type CloudPostureCredential struct{ ent.Schema }

// Mixin of a cloud-posture credential.
func (CloudPostureCredential) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a cloud-posture credential.
func (CloudPostureCredential) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("client_id"),
		field.Bytes("client_secret").Optional().Sensitive().Comment("encrypted"),
		field.String("api_url"),
		field.String("token_url"),
		field.String("audience").Default(""),
	}
}

// Indexes of a cloud-posture credential.
func (CloudPostureCredential) Indexes() []ent.Index {
	return []ent.Index{index.Fields("deployment_id", "id").StorageKey("cloud_posture_credentials_of_deployment")}
}
