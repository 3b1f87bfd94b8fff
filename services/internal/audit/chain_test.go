package audit_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/internal/audit"
)

func TestChainOfManyAtOnce(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, first, second *node) {
		const calls = 200
		failed := make(chan error, calls)
		var done sync.WaitGroup
		for i := range calls {
			n, deployment := first, acme
			if i%2 == 1 {
				n = second
			}
			if i%10 == 0 {
				deployment = globex
			}
			done.Go(func() {
				ctx, _ := n.call(deployment)
				failed <- n.tag(ctx, fmt.Sprintf("tag %d", i))
			})
		}
		done.Wait()
		close(failed)
		for err := range failed {
			must(t, err)
		}
		for deployment, want := range map[int64]int64{acme: calls * 9 / 10, globex: calls / 10} {
			for i, e := range first.entries(deployment) {
				if e.Sequence != int64(i+1) {
					t.Fatalf("entry %d of deployment %d has number %d", i+1, deployment, e.Sequence)
				}
			}
			first.wantWhole(deployment, want)
			second.wantWhole(deployment, want)
		}
	})
}

// TestVerifyWhileOthersAppend walks again and again while the chain grows under it.
func TestVerifyWhileOthersAppend(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, first, second *node) {
		first.tags(acme, "first")
		done := make(chan error)
		go func() {
			for i := range 100 {
				ctx, _ := first.call(acme)
				if err := first.tag(ctx, fmt.Sprintf("tag %d", i)); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		for {
			if found := second.verify(acme); found.Broken != nil {
				t.Fatalf("got %+v", found.Broken)
			}
			select {
			case err := <-done:
				must(t, err)
				second.wantWhole(acme, 101)
				return
			default:
			}
		}
	})
}

// swap lets two entries change places.
func swap(n *node) {
	n.sql("UPDATE audit_entries SET sequence = 1000 WHERE deployment_id = 1 AND sequence = 3")
	n.sql("UPDATE audit_entries SET sequence = 3 WHERE deployment_id = 1 AND sequence = 4")
	n.sql("UPDATE audit_entries SET sequence = 4 WHERE deployment_id = 1 AND sequence = 1000")
}

// of begins the condition that names entries of acme's.
const of = " WHERE deployment_id = 1 AND sequence "

// tamperings are what somebody may do to the database, and what a verification has to say about it.
var tamperings = []struct {
	name   string
	tamper []string
	do     func(n *node)
	want   []string
}{
	{"an edited actor", []string{"UPDATE audit_entries SET actor_id = 8" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited name", []string{"UPDATE audit_entries SET actor_name = 'eve@acme.test'" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited user", []string{"UPDATE audit_entries SET user_id = 8" + of + "= 1"}, nil, []string{"#1", "edited"}},
	{"an edited code", []string{"UPDATE audit_entries SET code = 'NotFound'" + of + "= 5"}, nil, []string{"#5", "edited"}},
	{"an edited time", []string{"UPDATE audit_entries SET at = at - 1" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited method", []string{"UPDATE audit_entries SET method = '/x/Y'" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited request", []string{"UPDATE audit_entries SET request = '{}'" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited address", []string{"UPDATE audit_entries SET remote = ''" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"an edited change", []string{`UPDATE audit_entries SET changes = '[{"kind":"tag","id":"9"}]'` + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"changes taken away", []string{"UPDATE audit_entries SET changes = NULL" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"changes of another form", []string{`UPDATE audit_entries SET changes = '{}'` + of + "= 3"}, nil, []string{"#3", "edited", "read"}},
	{"a replaced hash", []string{"UPDATE audit_entries SET hash = previous_hash" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"a hash taken away", []string{"UPDATE audit_entries SET hash = NULL" + of + "= 3"}, nil, []string{"#3", "edited"}},
	{"a removed entry", []string{"DELETE FROM audit_entries" + of + "= 3"}, nil, []string{"entry #3", "removed"}},
	{"removed entries", []string{"DELETE FROM audit_entries" + of + "IN (2, 3, 4)"}, nil, []string{"#2 to #4", "removed"}},
	{"the first removed", []string{"DELETE FROM audit_entries" + of + "= 1"}, nil, []string{"entry #1", "removed"}},
	{"the last removed", []string{"DELETE FROM audit_entries" + of + "= 5"}, nil, []string{"cut off", "entry #5 is missing"}},
	{"the end cut off", []string{"DELETE FROM audit_entries" + of + "> 3"}, nil, []string{"cut off", "#4 to #5"}},
	{"all removed but the head", []string{"DELETE FROM audit_entries WHERE deployment_id = 1"}, nil, []string{"cut off", "#1 to #5"}},
	{"a forged head", []string{"DELETE FROM audit_entries" + of + "= 5", "UPDATE audit_heads SET sequence = 4, " +
		"hash = (SELECT hash FROM audit_entries" + of + "= 4) WHERE deployment_id = 1"}, nil, []string{"head", "forged"}},
	{"a removed head", []string{"DELETE FROM audit_heads WHERE deployment_id = 1"}, nil, []string{"head", "removed"}},
	{"the head of another deployment", []string{"UPDATE audit_heads SET sequence = (SELECT sequence FROM audit_heads WHERE deployment_id = 2), " +
		"hash = (SELECT hash FROM audit_heads WHERE deployment_id = 2), seal = (SELECT seal FROM audit_heads WHERE deployment_id = 2) WHERE deployment_id = 1"},
		nil, []string{"head", "forged"}},
	{"two entries that changed places", nil, swap, []string{"#3", "moved"}},
	{"an entry taken out of the chain", []string{"UPDATE audit_entries SET sequence = 0" + of + "= 5", "DELETE FROM audit_heads WHERE deployment_id = 1"}, nil,
		[]string{"head", "removed"}},
	{"an entry that was added outside of the chain", []string{"INSERT INTO audit_entries (deployment_id, sequence, actor_kind, actor_id, method, code, request, " +
		"request_id, remote, at) SELECT deployment_id, 0, actor_kind, actor_id, method, code, request, request_id, remote, at FROM audit_entries" + of + "= 5"},
		nil, []string{"added"}},
	{"an entry of another deployment", []string{"DELETE FROM audit_entries" + of + "= 1", "UPDATE audit_entries SET deployment_id = 1 WHERE deployment_id = 2 AND sequence = 1"},
		nil, []string{"#1", "moved"}},
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for _, c := range tamperings {
			t.Run(c.name, func(t *testing.T) {
				n := n.fresh(t)
				n.tags(acme, "a", "b", "c", "d", "e")
				n.tags(globex, "a", "b")
				n.wantWhole(acme, 5)
				for _, statement := range c.tamper {
					n.sql(statement)
				}
				if c.do != nil {
					c.do(n)
				}
				n.wantBroken(acme, c.want...)
			})
		}
	})
}

// Whoever cuts off the end and makes the head fit must not get a whole chain as soon as the server writes its next entry.
func TestServerDoesNotSealAForgedHead(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for name, forge := range map[string]string{
			"a forged head":  "UPDATE audit_heads SET sequence = 3, hash = (SELECT hash FROM audit_entries WHERE deployment_id = 1 AND sequence = 3) WHERE deployment_id = 1",
			"a removed head": "DELETE FROM audit_heads WHERE deployment_id = 1",
			"an empty head":  "UPDATE audit_heads SET sequence = 0, hash = NULL, seal = NULL WHERE deployment_id = 1",
		} {
			t.Run(name, func(t *testing.T) {
				n := n.fresh(t)
				n.tags(acme, "a", "b", "c", "d", "e")
				n.sql("DELETE FROM audit_entries WHERE deployment_id = 1 AND sequence > 3")
				n.sql(forge)
				n.tags(acme, "f", "g")
				n.wantBroken(acme, "entry #4", "removed")
				if !strings.Contains(n.log.String(), "head of the audit trail was edited") {
					t.Error("the log says nothing")
				}
			})
		}
	})
}

func TestAnchor(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a", "b", "c")
		end := n.verify(acme)
		known := audit.Anchor{Sequence: end.Sequence, Hash: end.Hash}
		check := func(want string) {
			t.Helper()
			found, err := n.trail.Verify(t.Context(), acme, known, nil)
			must(t, err)
			if want == "" && found.Broken != nil || want != "" && (found.Broken == nil || !strings.Contains(found.Broken.Reason, want)) {
				t.Errorf("got %+v, want %q", found.Broken, want)
			}
		}
		n.tags(acme, "d")
		check("")
		n.sql("DELETE FROM audit_entries")
		n.sql("DELETE FROM audit_heads")
		n.wantWhole(acme, 0) // the database alone does not show it
		check("#1 to #3 are missing")
		n.tags(acme, "e", "f", "g", "h")
		check("entry #3 is not the one that is known")
	})
}

func TestUnchainedEntriesAreCounted(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.sql("INSERT INTO audit_entries (deployment_id, actor_kind, actor_id, method, code, request, request_id, remote, at) VALUES (1, 'user', 1, '/x/Y', 'OK', '{}', 'r', '', 1)")
		n.tags(acme, "a")
		if found := n.verify(acme); found.Broken != nil || found.Unchained != 1 || found.Entries != 1 || found.First == 0 || found.Last == 0 {
			t.Errorf("got %+v", found)
		}
	})
}

func TestKeyIsNotReplaced(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.sql("DELETE FROM settings WHERE name = 'audit_key'")
		again, err := audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
		must(t, err) // nothing depends on it yet
		n.trail = again
		n.tags(acme, "a")
		n.sql("DELETE FROM settings WHERE name = 'audit_key'")
		if _, err := audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler)); !errors.Is(err, audit.ErrNoKey) {
			t.Errorf("got %v, want %v", err, audit.ErrNoKey)
		}
	})
}
