package issue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// eventWords are the type and the title of each kind of finding event. A title ends in the new status if it ends in a
// blank.
var eventWords = map[string]struct {
	kind  findingsv1.HistoryType
	title string
}{
	"created":                {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Reported"},
	"updated":                {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Changed"},
	"reopened":               {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Reported again"},
	"fixed":                  {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Fixed"},
	"removed":                {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Removed"},
	"muted":                  {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Suppressed in the code"},
	"unmuted":                {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "No longer suppressed in the code"},
	pathignore.EventIgnored:  {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Ignored by a policy"},
	pathignore.EventReturned: {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "No longer ignored by a policy"},
	"matched":                {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Recognised after a change"},
	"split":                  {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Split into two findings"},
	"merged":                 {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Merged with another finding"},
	"identity_undone":        {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Change of the identity undone"},
	"close_rejected":         {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Kept open"},
	"triaged":                {findingsv1.HistoryType_HISTORY_TYPE_TRIAGE, "Triaged as "},
	"triage_spread":          {findingsv1.HistoryType_HISTORY_TYPE_TRIAGE, "Triaged on another ref as "},
	"triage_inherited":       {findingsv1.HistoryType_HISTORY_TYPE_TRIAGE, "Triaged before on another ref as "},
	"triage_undone":          {findingsv1.HistoryType_HISTORY_TYPE_TRIAGE, "Triage undone: "},
	"noted":                  {findingsv1.HistoryType_HISTORY_TYPE_TRIAGE, "Note changed"},
	verdict.EventKind:        {findingsv1.HistoryType_HISTORY_TYPE_AUTOTRIAGE, "Verdict: "},
	"ticket_created":         {findingsv1.HistoryType_HISTORY_TYPE_TICKET_CREATED, "Ticket created"},
	"ticket_linked":          {findingsv1.HistoryType_HISTORY_TYPE_TICKET_CREATED, "Ticket linked"},
	"ticket_unlinked":        {findingsv1.HistoryType_HISTORY_TYPE_STATUS, "Ticket unlinked"},
	ticketAttempted:          {findingsv1.HistoryType_HISTORY_TYPE_TICKET_ATTEMPTED, "Ticket not created"},
	exceptionRequested:       {findingsv1.HistoryType_HISTORY_TYPE_EXCEPTION_REQUEST_CREATED, "Exception requested"},
	"exception_approved":     {findingsv1.HistoryType_HISTORY_TYPE_EXCEPTION_REQUEST_APPROVED, "Exception approved"},
	"exception_rejected":     {findingsv1.HistoryType_HISTORY_TYPE_EXCEPTION_REQUEST_REJECTED, "Exception rejected"},
}

// ticketAttempted is the kind of event of a ticket that the tracker did not create. Its note says why.
const ticketAttempted = "ticket_attempted"

// EventKinds are the kinds of finding events, in alphabetical order.
func EventKinds() []string { return slices.Sorted(maps.Keys(eventWords)) }

// describe converts a finding event. A kind of a later version is shown by its name.
func (h *histories) describe(e *ent.FindingEvent) *findingsv1.IssueActivityHistoryEvent {
	words, known := eventWords[e.Kind]
	if !known {
		words.kind, words.title = findingsv1.HistoryType_HISTORY_TYPE_STATUS, plainWords(e.Kind)
	}
	out := &findingsv1.IssueActivityHistoryEvent{HistoryType: words.kind, Title: words.title, Note: e.Note}
	switch words.kind {
	case findingsv1.HistoryType_HISTORY_TYPE_STATUS:
		out.Note = cmp.Or(e.Note, e.Reason)
	case findingsv1.HistoryType_HISTORY_TYPE_AUTOTRIAGE:
		out.Title += plainWords(e.Reason)
		return out
	case findingsv1.HistoryType_HISTORY_TYPE_TRIAGE:
		out.TriageReason = e.Reason
	default:
		out.TriageReason, out.ExceptionRequestDetails = e.Reason, h.exceptionDetails(e)
	}
	if strings.HasSuffix(out.GetTitle(), " ") {
		out.Title += plainWords(e.ToStatus)
	}
	return out
}

func plainWords(word string) string { return strings.ReplaceAll(word, "_", " ") }

// actor is who caused an entry. A name is only given for people at a source-code host and authors of documents.
type actor struct {
	kind string
	id   int64
	name string
}

// actorNames returns the names of actors that are people or tokens. Deleted ones have none.
func actorNames(ctx context.Context, db *ent.Client, actors []actor) (map[actor]string, error) {
	people, tokens, names := map[int64]bool{}, map[int64]bool{}, map[actor]string{}
	for _, a := range actors {
		switch names[a] = a.name; a.kind {
		case "user":
			people[a.id] = true
		case "token":
			tokens[a.id] = true
		}
	}
	if list := keys(people); len(list) > 0 {
		rows, err := db.User.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(user.FieldID), list)) }).
			Select(user.FieldID, user.FieldName, user.FieldEmail).All(tenant.System(ctx)) // people may have left the deployment
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			names[actor{kind: "user", id: row.ID}] = cmp.Or(row.Name, row.Email)
		}
	}
	if list := keys(tokens); len(list) > 0 {
		rows, err := db.Token.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(token.FieldID), list)) }).
			Select(token.FieldID, token.FieldName).All(ctx)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			names[actor{kind: "token", id: row.ID}] = row.Name
		}
	}
	return names, nil
}
