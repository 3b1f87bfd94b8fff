package audit

import (
	"context"
	"errors"
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
	entries []pendingEntry // oldest first
	timer   *time.Timer    // set while there are entries
	closed  bool           // no more entries are accepted
	journal journal

	writing sync.Mutex // held by the goroutine that writes
}

type pendingEntry struct {
	*ent.AuditEntry
	again bool // it comes from the journal, so the database may have it already
}

// AppendLater keeps an entry that Append could not write, also in the journal, and retries until the database accepts
// it. A full disk or an unreachable database must not hide refused calls. It returns false when the entry is lost,
// because too many are pending or a retry would not help. The entry is logged in any case.
func (t *Trail) AppendLater(ctx context.Context, call Call, deploymentID int64, code codes.Code, cause error) bool {
	if call.Actor.Kind == "" {
		return false
	}
	entry := entryOf(call, deploymentID, code, nil)
	entry.At = store.Now()
	kept := isTransient(cause) && t.keep(ctx, entry)
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

func (t *Trail) keep(ctx context.Context, entry *ent.AuditEntry) bool {
	o := &t.pending
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.entries) >= maxPending {
		return false
	}
	if err := t.save(entry); err != nil {
		t.log.ErrorContext(ctx, "a pending audit entry is in memory only: it could not be written to its file", "error", err)
	}
	o.entries = append(o.entries, pendingEntry{AuditEntry: entry})
	if o.timer == nil {
		o.timer = time.AfterFunc(retryInterval, t.retry)
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
			if err := t.pending.journal.clear(); err != nil {
				t.log.ErrorContext(ctx, "the file of pending audit entries could not be emptied", "error", err)
			}
			t.pending.mu.Unlock()
			return false
		}
		entry := t.pending.entries[0]
		t.pending.mu.Unlock()
		err := t.writeOne(ctx, entry)
		if err != nil && isTransient(err) {
			return true
		}
		if err != nil {
			t.logEntry(ctx, "an audit entry was lost", entry.AuditEntry, err)
		}
		t.pending.mu.Lock()
		t.pending.entries = t.pending.entries[1:]
		t.pending.mu.Unlock()
	}
}

func (t *Trail) writeOne(ctx context.Context, entry pendingEntry) error {
	ctx, cancel := context.WithTimeout(ctx, pendingTimeout)
	defer cancel()
	return t.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if entry.again {
			if there, err := stored(ctx, tx, entry.AuditEntry); err != nil || there {
				return err
			}
		}
		attempt := *entry.AuditEntry // a copy: each attempt assigns a sequence
		return t.add(ctx, tx, &attempt)
	})
}

// Close tries to write the pending entries one last time, when the server stops. Its error counts the entries that are
// only in the journal, which the next start takes in, or only in the log.
func (t *Trail) Close(ctx context.Context) error {
	t.pending.mu.Lock()
	if t.pending.closed = true; t.pending.timer != nil {
		t.pending.timer.Stop()
	}
	t.pending.mu.Unlock()
	left := t.writePending(ctx)
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	j := &t.pending.journal
	err := j.close()
	switch n := len(t.pending.entries); {
	case !left:
		return err
	case j.file == nil:
		return fmt.Errorf("%d audit entries could not be written; the log has them", n)
	case j.lost > 0:
		return errors.Join(err, fmt.Errorf("%d audit entries could not be written; the next start takes in those in %s, and records that up to %d were lost; the log has them",
			n, j.file.Name(), j.lost))
	default:
		return errors.Join(err, fmt.Errorf("%d audit entries could not be written; they are in %s, and the next start takes them in", n, j.file.Name()))
	}
}
