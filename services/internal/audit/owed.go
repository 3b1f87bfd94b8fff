package audit

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// maxOwed is how many entries wait in memory for a database that takes none now: each has less than 10 KB.
	maxOwed = 1000
	// owedTimeout bounds the write of one of them.
	owedTimeout = 5 * time.Second
)

// owedInterval is how long after a failure it is tried again; tests shorten it.
var owedInterval = 5 * time.Second

// owed are entries that the database could not take.
type owed struct {
	mu      sync.Mutex
	entries []*ent.AuditEntry // oldest first
	timer   *time.Timer       // runs while there are any
	settled bool              // nothing is kept any more

	writing sync.Mutex // of the one that writes
}

// Owe keeps the entry of a call that Append could not write, and writes it when the database takes entries again: a
// disk that is full, or a database that is away, must not hide who was refused meanwhile. False means that the entry is
// lost: too many wait already, or trying again would not help. The log has it in any case.
func (t *Trail) Owe(ctx context.Context, call Call, deploymentID int64, code codes.Code, cause error) bool {
	if call.Actor.Kind == "" {
		return false
	}
	entry := entryOf(call, deploymentID, code, nil)
	entry.At = store.Now()
	kept := passing(cause) && t.owed.add(entry, t.retry)
	text := "an audit entry was lost"
	if kept {
		text = "an audit entry could not be written, and will be later"
	}
	t.logEntry(ctx, text, entry, cause)
	return kept
}

// Full reports whether so many entries wait that none can be owed any more. Whoever is about to do something that has
// to leave an entry refuses it then: what Append could not write would be in the log only.
func (t *Trail) Full() bool {
	t.owed.mu.Lock()
	defer t.owed.mu.Unlock()
	return len(t.owed.entries) >= maxOwed
}

// logEntry tells all of an entry that is not in the database.
func (t *Trail) logEntry(ctx context.Context, text string, e *ent.AuditEntry, cause error) {
	t.log.ErrorContext(ctx, text, "deployment_id", e.DeploymentID, "actor_kind", e.ActorKind, "actor_id", e.ActorID, "actor", e.ActorName,
		"user_id", e.UserID, "audited_method", e.Method, "code", e.Code, "audited_request_id", e.RequestID, "remote", e.Remote,
		"request", e.Request, "at", time.UnixMicro(e.At).UTC().Format(time.RFC3339Nano), "error", cause)
}

// passing reports whether what kept an entry from being written may pass by itself.
func passing(cause error) bool {
	switch status.Code(apierr.Map(cause)) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

func (o *owed) add(entry *ent.AuditEntry, retry func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.settled || len(o.entries) >= maxOwed {
		return false
	}
	o.entries = append(o.entries, entry)
	if o.timer == nil {
		o.timer = time.AfterFunc(owedInterval, retry)
	}
	return true
}

// retry writes what it can, and comes again while something is left.
func (t *Trail) retry() {
	left := t.writeOwed(context.Background())
	t.owed.mu.Lock()
	defer t.owed.mu.Unlock()
	if t.owed.timer = nil; !t.owed.settled && (left || len(t.owed.entries) > 0) {
		t.owed.timer = time.AfterFunc(owedInterval, t.retry)
	}
}

// writeOwed writes entries, the oldest first, until one fails that may succeed later.
func (t *Trail) writeOwed(ctx context.Context) (left bool) {
	t.owed.writing.Lock()
	defer t.owed.writing.Unlock()
	for {
		t.owed.mu.Lock()
		if len(t.owed.entries) == 0 {
			t.owed.mu.Unlock()
			return false
		}
		entry := t.owed.entries[0]
		t.owed.mu.Unlock()
		err := t.writeLate(ctx, *entry)
		if err != nil && passing(err) {
			return true
		}
		if err != nil {
			t.logEntry(ctx, "an audit entry was lost", entry, err)
		}
		t.owed.mu.Lock()
		t.owed.entries = t.owed.entries[1:]
		t.owed.mu.Unlock()
	}
}

func (t *Trail) writeLate(ctx context.Context, entry ent.AuditEntry) error {
	ctx, cancel := context.WithTimeout(ctx, owedTimeout)
	defer cancel()
	return t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		attempt := entry // its place is that of this attempt
		return t.add(ctx, tx, &attempt)
	})
}

// Settle writes what is owed for the last time, when the server stops. What cannot be written is in the log only, which
// the error says.
func (t *Trail) Settle(ctx context.Context) error {
	t.owed.mu.Lock()
	if t.owed.settled = true; t.owed.timer != nil {
		t.owed.timer.Stop()
	}
	t.owed.mu.Unlock()
	if !t.writeOwed(ctx) {
		return nil
	}
	t.owed.mu.Lock()
	defer t.owed.mu.Unlock()
	return fmt.Errorf("%d audit entries could not be written; the log has them", len(t.owed.entries))
}
