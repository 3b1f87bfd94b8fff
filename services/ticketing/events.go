package ticketing

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// Kinds of events in the history of findings.
const (
	eventCreated   = "ticket_created"
	eventAttempted = "ticket_attempted"
	eventLinked    = "ticket_linked"
	eventUnlinked  = "ticket_unlinked"
)

// maxNote is the maximum length of the note of an event, in bytes.
const maxNote = 3000

// recordEvents writes an event for each finding, by the caller or the job.
func recordEvents(ctx context.Context, st *store.Store, tx *ent.Tx, ids []int64, kind, note string) error {
	if len(ids) == 0 {
		return nil
	}
	deploymentID, _ := tenant.FromContext(ctx)
	kindOf, actorID := "job", int64(0)
	if caller, ok := access.FromContext(ctx); ok {
		kindOf, actorID = string(caller.Kind), caller.ID
	}
	among, list := st.InIDs(ids)
	args := []any{kind, clip(note, maxNote), kindOf, actorID, store.Now(), deploymentID}
	return st.Exec(ctx, tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
		SELECT deployment_id, id, CAST(? AS TEXT), status, status, '', CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS bigint), '', CAST(? AS bigint) FROM findings
		WHERE +deployment_id = ? AND id`+among, append(args, list...)...)
}

func clip(text string, limit int) string {
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
