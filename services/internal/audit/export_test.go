package audit

import (
	"context"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/audithead"
	"github.com/palisade/palisade/ent/tenant"
)

// SetRetryInterval shortens the interval between retries of pending entries.
func SetRetryInterval(d time.Duration) { retryInterval = d }

// HoldPending keeps pending entries from being written until release is called.
func (t *Trail) HoldPending() (release func()) {
	t.pending.writing.Lock()
	return t.pending.writing.Unlock
}

// ForgetIDs leaves all heads as a server of the version before sealed ids has written them.
func (t *Trail) ForgetIDs(test testing.TB) {
	test.Helper()
	err := t.store.Write(tenant.System(test.Context()), func(ctx context.Context, tx *ent.Tx) error {
		heads, err := tx.AuditHead.Query().All(ctx)
		if err != nil {
			return err
		}
		for _, head := range heads {
			o, err := t.originOf(head)
			if err != nil {
				return err
			}
			o.IDs = false
			origin, err := t.sealOrigin(head.DeploymentID, *o)
			if err != nil {
				return err
			}
			if err := tx.AuditHead.Update().Where(audithead.ID(head.ID)).SetOrigin(origin).ClearIds().Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		test.Fatal(err)
	}
}

// JournalIsFull makes the file of pending entries take no more entries; its header can still be written.
func (t *Trail) JournalIsFull() {
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	t.pending.journal.end = 1 << 62 // no file has space there
}
