package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"github.com/palisade/palisade/ent/column"
)

// TicketingInstance connects a deployment to an issue tracker.
type TicketingInstance struct{ ent.Schema }

// Mixin of a ticketing instance.
func (TicketingInstance) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a ticketing instance.
func (TicketingInstance) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("kind").Immutable().Comment("github, gitlab, jira, jira-data-center"),
		field.String("base_url").Immutable().Comment("without a trailing slash"),
		field.String("account").Default("").Comment("of the token: an e-mail address at Jira Cloud"),
		field.Bytes("token").Optional().Sensitive().Comment("encrypted: credential at the tracker"),
		field.Bool("refused").Default(false).Comment("the tracker refused the credential at the last call"),
		field.String("project").Default("").Comment("of the tracker; empty: only mapped projects get tickets"),
		field.String("issue_type").Default(""),
		field.Bytes("fields").Optional().Comment("JSON object: more fields of Jira's issues"),
		field.Strings("labels").Optional(),
		field.JSON("mappings", []column.TicketProject{}).Optional().Comment("in the order in which they are tried"),
		field.String("close_at").Default("").Comment("fixed, ignored: the state of all findings that closes a ticket; empty: none does"),
		field.String("transition").Default("").Comment("id of Jira's transition that closes; empty: the first that does"),
		field.String("closed_state").Default("").Comment("triage state of open findings whose ticket was closed in the tracker; empty: none"),
		field.String("closed_reason").Default("").Comment("of the state ignored"),
		field.Strings("automatic").Optional().Comment("products whose new findings get tickets; malicious: malicious dependencies"),
		timestamp("automatic_after").Default(0).Comment("findings that became relevant until then were looked at"),
		timestamp("created_at").Immutable(),
		timestamp("updated_at"),
	}
}

// Indexes of a ticketing instance.
func (TicketingInstance) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "id").StorageKey("ticketing_instances_of_deployment"),
	}
}

// Ticket is a ticket in an issue tracker. Who may see it follows from the findings that are linked to it.
type Ticket struct{ ent.Schema }

// Mixin of a ticket.
func (Ticket) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a ticket.
func (Ticket) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("instance_id").Immutable(),
		field.String("project").Immutable().Comment("of the tracker; empty for tickets that were linked"),
		field.String("marker").Immutable().Comment("random text in the ticket, by which it is found if the answer was lost; empty for tickets that were linked"),
		field.String("key").Default("").Comment("in the tracker; empty until its answer is known"),
		field.String("url").Default(""),
		field.Bool("open").Default(true).Comment("as the tracker last said, or we told it"),
		field.Bool("closed_here").Default(false).Comment("we closed it, and open it again with its findings"),
		timestamp("checked_at").Default(0).Comment("when the tracker was last asked, or told"),
		timestamp("claimed_until").Optional().Nillable().Comment("until then, a call creates it; null when its key is known"),
		timestamp("created_at").Immutable(),
	}
}

// Indexes of a ticket.
func (Ticket) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "instance_id", "key").Unique().StorageKey("tickets_by_key").Annotations(entsql.IndexWhere("claimed_until IS NULL")),
		index.Fields("deployment_id", "instance_id", "checked_at", "id").StorageKey("tickets_by_check").Annotations(entsql.IndexWhere("claimed_until IS NULL")),
	}
}

// TicketLink links a finding to its ticket.
type TicketLink struct{ ent.Schema }

// Mixin of a link.
func (TicketLink) Mixin() []ent.Mixin { return []ent.Mixin{TenantMixin{}} }

// Fields of a link.
func (TicketLink) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.Int64("ticket_id"),
		field.Int64("project_id").Immutable(),
		field.Int64("finding_id").Immutable(),
	}
}

// Indexes of a link.
func (TicketLink) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("deployment_id", "finding_id").Unique().StorageKey("ticket_links_of_finding"),
		index.Fields("deployment_id", "ticket_id", "finding_id").StorageKey("ticket_links_of_ticket"),
		index.Fields("deployment_id", "project_id", "id").StorageKey("ticket_links_of_project"),
	}
}
