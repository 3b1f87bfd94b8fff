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
	// maxPending limits the entries that wait in memory while the database accepts none. Each has less than 10 KB.
	maxPending = 1000
	// pendingTimeout limits the write of one pending entry.
	pendingTimeout = 5 * time.Second
)

// retryInterval is the time between two attempts to write pending entries; tests shorten it.
var retryInterval = 5 * time.Second

// pendingEntries are entries that the database has not accepted yet.
type pendingEntries struct {
	mu      sync.Mutex
	entries []*ent.AuditEntry // oldest first
	timer   *time.Timer       // set while there are entries
	closed  bool              // no more entries are accepted

	writing sync.Mutex // held by the goroutine that writes
}

// AppendLater keeps an entry that Append could not write, and retries until the database accepts it. A full disk or
// an unreachable database must not hide refused calls. It returns false when the entry is lost, because too many
// are pending or a retry would not help. The entry is logged in any case.
func (t *Trail) AppendLater(ctx context.Context, call Call, deploymentID int64, code codes.Code, cause error) bool {
	if call.Actor.Kind == "" {
		return false
	}
	entry := entryOf(call, deploymentID, code, nil)
	entry.At = store.Now()
	kept := isTransient(cause) && t.pending.add(entry, t.retry)
	text := "an audit entry was lost"
	if kept {
		text = "an audit entry could not be written now and will be retried"
	}
	t.logEntry(ctx, text, entry, cause)
	return kept
}

// Full reports whether no more entries can be kept. Calls that must leave an entry are refused then, because the
// entry would only be in the log.
func (t *Trail) Full() bool {
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	return len(t.pending.entries) >= maxPending
}

// logEntry logs all fields of an entry that is not in the database.
func (t *Trail) logEntry(ctx context.Context, text string, e *ent.AuditEntry, cause error) {
	t.log.ErrorContext(ctx, text, "deployment_id", e.DeploymentID, "actor_kind", e.ActorKind, "actor_id", e.ActorID, "actor", e.ActorName,
		"user_id", e.UserID, "audited_method", e.Method, "code", e.Code, "audited_request_id", e.RequestID, "remote", e.Remote,
		"request", e.Request, "at", time.UnixMicro(e.At).UTC().Format(time.RFC3339Nano), "error", cause)
}

// isTransient reports whether the write may succeed later.
func isTransient(cause error) bool {
	switch status.Code(apierr.Map(cause)) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

func (o *pendingEntries) add(entry *ent.AuditEntry, retry func()) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.entries) >= maxPending {
		return false
	}
	o.entries = append(o.entries, entry)
	if o.timer == nil {
		o.timer = time.AfterFunc(retryInterval, retry)
	}
	return true
}

// retry writes pending entries, and schedules itself again while some are left.
func (t *Trail) retry() {
	left := t.writePending(context.Background())
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	if t.pending.timer = nil; !t.pending.closed && (left || len(t.pending.entries) > 0) {
		t.pending.timer = time.AfterFunc(retryInterval, t.retry)
	}
}

// writePending writes the oldest entries until one fails with a transient error.
func (t *Trail) writePending(ctx context.Context) (left bool) {
	t.pending.writing.Lock()
	defer t.pending.writing.Unlock()
	for {
		t.pending.mu.Lock()
		if len(t.pending.entries) == 0 {
			t.pending.mu.Unlock()
			return false
		}
		entry := t.pending.entries[0]
		t.pending.mu.Unlock()
		err := t.writeOne(ctx, *entry)
		if err != nil && isTransient(err) {
			return true
		}
		if err != nil {
			t.logEntry(ctx, "an audit entry was lost", entry, err)
		}
		t.pending.mu.Lock()
		t.pending.entries = t.pending.entries[1:]
		t.pending.mu.Unlock()
	}
}

func (t *Trail) writeOne(ctx context.Context, entry ent.AuditEntry) error {
	ctx, cancel := context.WithTimeout(ctx, pendingTimeout)
	defer cancel()
	return t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		attempt := entry // a copy: each attempt assigns a sequence
		return t.add(ctx, tx, &attempt)
	})
}

// Close tries to write the pending entries one last time, when the server stops. Its error counts the entries that
// are only in the log.
func (t *Trail) Close(ctx context.Context) error {
	t.pending.mu.Lock()
	if t.pending.closed = true; t.pending.timer != nil {
		t.pending.timer.Stop()
	}
	t.pending.mu.Unlock()
	if !t.writePending(ctx) {
		return nil
	}
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	return fmt.Errorf("%d audit entries could not be written; the log has them", len(t.pending.entries))
}
