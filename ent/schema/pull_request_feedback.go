package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// PullRequestFeedback is what was written about a pull request at its source-code host.
type PullRequestFeedback struct{ ent.Schema }

// Mixin of feedback.
func (PullRequestFeedback) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of feedback.
func (PullRequestFeedback) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("project_id").Immutable(),
		field.Int64("number").Immutable().Comment("of the pull request"),
		field.String("marker").Immutable().Comment("random text in the comment, by which it is found if its id was lost"),
		field.String("commit").Default("").Comment("that has the statuses"),
		field.JSON("statuses", map[string]string{}).Optional().Comment("state and description by name"),
		field.String("comment_id").Default("").Comment("the host's id; empty: none was written, or its id was lost"),
		field.String("comment_digest").Default("").Comment("of its text; empty: unknown"),
		field.Bytes("line_comments").Optional().Comment("palisade.store.v1.LineComments"),
		field.String("problem").Default("").Comment("why the host refused the last try; for people"),
		field.Bool("closed").Default(false).Comment("the host says that the pull request is closed"),
		timestamp("claimed_until").Default(0).Comment("until then, another job writes"),
		timestamp("updated_at"),
	}
}

// Indexes of feedback.
func (PullRequestFeedback) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "project_id", "number").Unique().StorageKey("pull_request_feedbacks_of_request"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("pull_request_feedbacks_open").Annotations(entsql.IndexWhere("NOT closed")),
	}
}
