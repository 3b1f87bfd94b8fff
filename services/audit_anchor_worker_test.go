package services

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// TestAnchorWorker: only trails that have grown are exported. A trail that was rolled back or damaged is reported at
// once.
func TestAnchorWorker(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		st := storetest.Open(t, o)
		keyring, err := secret.Open(filepath.Join(t.TempDir(), "key"), true)
		must(err)
		trail, err := audit.Open(t.Context(), st, keyring, slog.New(slog.DiscardHandler))
		must(err)
		must(st.Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Deployment.Create().SetID(1).SetSlug("acme").SetName("Acme").SetCreatedAt(store.Now()).Exec(ctx)
		}))
		var log bytes.Buffer
		path := filepath.Join(t.TempDir(), "anchors")
		w := &anchorWorker{store: st, trail: trail, log: slog.New(slog.NewTextHandler(&log, nil)), to: "file://" + path, last: map[int64]audit.Anchor{}}
		work := func(lines int, logged string) {
			t.Helper()
			must(w.Work(t.Context(), nil))
			text, err := os.ReadFile(path)
			must(err)
			if n := bytes.Count(text, []byte("\n")); n != lines {
				t.Errorf("%d lines, want %d:\n%s", n, lines, text)
			}
			if (logged == "") != (log.Len() == 0) || !strings.Contains(log.String(), logged) {
				t.Errorf("logged %q, want %q", log.String(), logged)
			}
			log.Reset()
		}
		call := audit.Call{Actor: audit.Actor{Kind: "user", ID: 7}, Method: "/x/Y"}
		write := func() { must(trail.Append(tenant.System(t.Context()), call, 1, codes.OK)) }
		execute := func(statement string) {
			t.Helper()
			_, writer := st.DB()
			_, err := writer.ExecContext(t.Context(), statement)
			must(err)
		}
		work(1, "") // its existence, without entries
		work(1, "")
		write()
		execute("CREATE TABLE heads_before AS SELECT * FROM audit_heads")
		write()
		work(2, "")
		execute("DELETE FROM audit_entries WHERE sequence = 2")
		execute("DELETE FROM audit_heads")
		execute("INSERT INTO audit_heads SELECT * FROM heads_before")
		work(3, "rolled back or replaced")
		execute("UPDATE audit_heads SET sequence = 5")
		work(3, "no anchor of an audit trail is exported")
		w.to = "file:///nowhere/at/all"
		execute("DELETE FROM audit_heads")
		execute("INSERT INTO audit_heads SELECT * FROM heads_before")
		write()
		if err := w.Work(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "audit-anchor") {
			t.Errorf("got %v", err)
		}
	})
}
