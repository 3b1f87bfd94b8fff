package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

const oldEntry = "INSERT INTO audit_entries (deployment_id, actor_kind, actor_id, method, code, request, request_id, remote, at) VALUES (1, 'user', 7, '/x/Y', 'OK', '{}', 'r', '', 1)"

// asBefore downgrades the store to the version before origins.
func (n *node) asBefore() {
	n.t.Helper()
	key, err := n.keyring.Unseal(n.setting("audit_key"), []byte("audit_key"))
	must(n.t, err)
	sealed, err := n.keyring.Seal(key[:32], []byte("audit_key"))
	must(n.t, err)
	_, writer := n.store.DB()
	_, err = writer.ExecContext(n.t.Context(), "UPDATE settings SET value = $1 WHERE name = 'audit_key'", sealed)
	must(n.t, err)
	n.sql("UPDATE audit_heads SET origin = NULL, ids = NULL")
	n.sql("DELETE FROM audit_heads WHERE sequence = 0")
	n.trail, err = audit.Read(n.t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
	must(n.t, err)
}

func (n *node) reopen() {
	n.t.Helper()
	var err error
	n.trail, err = audit.Open(n.t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
	must(n.t, err)
}

// TestUpgrade: an old store keeps its chain and its old entries. After the upgrade no entry can be removed
// undetected.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, other *node) {
		n.tags(acme, "a", "b", "c")
		n.sql(oldEntry)
		n.asBefore()
		n.wantIntact(acme, 3)
		n.wantIntact(globex, 0)
		n.reopen()
		n.tags(acme, "d")
		n.tags(globex, "d")
		other.tags(acme, "e") // a node of the previous version has the key without the mark; its hashes are the same
		found := n.verify(acme)
		if len(found.Broken) > 0 || found.Entries != 5 || found.Unchained != 1 || found.Origin == nil || found.Origin.How != audit.OriginAdopted {
			t.Fatalf("got %+v", found)
		}
		n.wantIntact(globex, 1)
		rows := n.entries(acme)
		if kept, withheld, err := n.trail.Listed(t.Context(), acme, rows); err != nil || len(kept) != 6 || withheld != 0 {
			t.Errorf("%d entries listed, %d withheld, %v", len(kept), withheld, err)
		}
		for _, c := range []struct{ tamper, undo, want string }{
			{oldEntry, "DELETE FROM audit_entries WHERE id = (SELECT MAX(id) FROM audit_entries)", "1 entries without a place in the trail were added"},
			{"UPDATE audit_entries SET actor_id = 8 WHERE sequence = 0", "UPDATE audit_entries SET actor_id = 7 WHERE sequence = 0", "from before the trail were edited"},
			{"UPDATE audit_entries SET sequence = -1 WHERE sequence = 0", "UPDATE audit_entries SET sequence = 0 WHERE sequence = -1", "from before the trail were edited"},
			{"UPDATE audit_heads SET origin = NULL WHERE deployment_id = 1", "", "origin"},
		} {
			n.sql(c.tamper)
			n.wantBroken(acme, c.want)
			if c.undo != "" {
				n.sql(c.undo)
				n.wantIntact(acme, 5)
			}
		}
		n.reopen()
		n.wantBroken(acme, "origin") // a later start does not upgrade again
		if _, begun, err := audit.Establish(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler)); err != nil || len(begun) != 1 || begun[0] != acme {
			t.Errorf("begin: %v, %v", begun, err)
		}
		n.wantIntact(acme, 5)
		n.sql("DELETE FROM audit_entries WHERE sequence = 0")
		n.wantBroken(acme, "1 of the 1 entries from before the trail were removed")
	})
}

// TestUpgradeDoesNotCover: tampering before the upgrade is detected afterwards.
func TestUpgradeDoesNotCover(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for name, statements := range map[string][]string{
			"numbers and head": {"UPDATE audit_entries SET sequence = 0", "DELETE FROM audit_heads"},
			"head":             {"DELETE FROM audit_heads"},
			"seal":             {"UPDATE audit_heads SET seal = NULL"},
			"entry":            {"DELETE FROM audit_entries WHERE sequence = 2"},
		} {
			t.Run(name, func(t *testing.T) {
				n := n.fresh(t)
				n.tags(acme, "a", "b", "c")
				n.asBefore()
				for _, s := range statements {
					n.sql(s)
				}
				n.wantBroken(acme)
				n.reopen()
				n.tags(acme, "d")
				n.wantBroken(acme)
			})
		}
	})
}

func TestKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.sql("DELETE FROM settings WHERE name = 'audit_key'") // nothing was written yet, but deployments exist
		if _, err := audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler)); !errors.Is(err, audit.ErrNoKey) {
			t.Errorf("got %v, want %v", err, audit.ErrNoKey)
		}
		n.sql("INSERT INTO settings (name, value) SELECT 'audit_key', value FROM settings WHERE name = 'key_check'")
		if n.store.Postgres() {
			n.sql("INSERT INTO settings (name, value) VALUES ('audit_key', 'x') ON CONFLICT DO NOTHING")
		} else {
			n.sql("INSERT OR IGNORE INTO settings (name, value) VALUES ('audit_key', 'x')")
		}
		if _, err := audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler)); !errors.Is(err, audit.ErrKey) {
			t.Errorf("got %v, want %v", err, audit.ErrKey)
		}
	})
}

// TestKeyFileWithANewKey: after a new key was added to the key file and is in use, values sealed with the old key
// stay valid.
func TestKeyFileWithANewKey(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a", "b")
		anchor, err := n.trail.Anchor(t.Context(), acme, "acme")
		must(t, err)
		text, err := os.ReadFile(n.keyring.Path())
		must(t, err)
		handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
		must(t, err)
		manager := keyset.NewManagerFromHandle(handle)
		id, err := manager.Add(aead.AES256GCMKeyTemplate())
		must(t, err)
		must(t, manager.SetPrimary(id))
		handle, err = manager.Handle()
		must(t, err)
		var out bytes.Buffer
		must(t, insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&out)))
		must(t, os.WriteFile(n.keyring.Path(), out.Bytes(), 0o600))
		n.keyring, err = secret.Open(n.keyring.Path(), false)
		must(t, err)
		n.reopen()
		n.tags(acme, "c")
		n.wantIntact(acme, 3)
		if !n.trail.Genuine(anchor) {
			t.Error("an anchor from before the upgrade is no longer genuine")
		}
	})
}

// TestNodesBeginAtOnce: nodes that start together on an empty store share one key.
func TestNodesBeginAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		keyring, err := secret.Open(filepath.Join(t.TempDir(), "key"), true)
		must(t, err)
		const nodes = 6
		trails, errs := make([]*audit.Trail, nodes), make([]error, nodes)
		stores := make([]*store.Store, nodes)
		for i := range stores {
			stores[i] = storetest.Open(t, o)
		}
		var done sync.WaitGroup
		for i := range nodes {
			done.Go(func() {
				if trails[i], errs[i] = audit.Open(t.Context(), stores[i], keyring, slog.New(slog.DiscardHandler)); errs[i] != nil {
					return
				}
				errs[i] = stores[i].Write(tenant.System(t.Context()), func(ctx context.Context, tx *ent.Tx) error {
					slug := fmt.Sprintf("d%d", i)
					return tx.Deployment.Create().SetSlug(slug).SetName(slug).SetCreatedAt(store.Now()).Exec(ctx)
				})
			})
		}
		done.Wait()
		must(t, errors.Join(errs...))
		for id := range int64(nodes) {
			if found, err := trails[0].Verify(t.Context(), id+1, nil, nil); err != nil || len(found.Broken) > 0 {
				t.Errorf("deployment %d: %v, %v", id+1, found.Broken, err)
			}
		}
	})
}

func TestAnchorsAreAuthentic(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a", "b")
		a, err := n.trail.Anchor(t.Context(), acme, "acme")
		must(t, err)
		var read []audit.ExportedAnchor
		text := "<109>1 2026-01-01T00:00:00Z host palisade 1 audit-anchor - " + string(a.Line()) + "\n" + string(a.Line())
		must(t, audit.ParseAnchors(strings.NewReader(text), func(_ int, a audit.ExportedAnchor) error {
			read = append(read, a)
			return nil
		}))
		if len(read) != 2 || !n.trail.Genuine(read[0]) || !n.trail.Genuine(read[1]) {
			t.Fatalf("got %+v", read)
		}
		for name, edit := range map[string]func(*audit.ExportedAnchor){
			"sequence":   func(a *audit.ExportedAnchor) { a.Sequence = 1 },
			"hash":       func(a *audit.ExportedAnchor) { a.Hash = strings.Repeat("ab", 32) },
			"deployment": func(a *audit.ExportedAnchor) { a.DeploymentID = globex },
			"time":       func(a *audit.ExportedAnchor) { a.At = a.At.AddDate(0, 0, 1) },
			"mac":        func(a *audit.ExportedAnchor) { a.MAC = "" },
		} {
			edited := read[0]
			if edit(&edited); n.trail.Genuine(edited) {
				t.Errorf("an edited %s is not detected", name)
			}
		}
		known, err := a.Known()
		must(t, err)
		if held, err := n.trail.Holds(t.Context(), acme, known); err != nil || !held {
			t.Errorf("got %v, %v", held, err)
		}
		n.sql("DELETE FROM audit_entries WHERE sequence = 2")
		if held, err := n.trail.Holds(t.Context(), acme, known); err != nil || held {
			t.Errorf("got %v, %v", held, err)
		}
		for _, bad := range []string{"{}", "x", `{"deployment_id":1,"sequence":1,"hash":"ab"}`} {
			if err := audit.ParseAnchors(strings.NewReader("\n"+bad), func(int, audit.ExportedAnchor) error { return nil }); err == nil || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("%s: got %v", bad, err)
			}
		}
	})
}
