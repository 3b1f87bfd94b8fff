package audit_test

import (
	"fmt"
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
			first.wantIntact(deployment, want)
			second.wantIntact(deployment, want)
		}
	})
}

// TestVerifyWhileOthersAppend verifies repeatedly while the chain grows.
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
			if found := second.verify(acme); len(found.Broken) > 0 {
				t.Fatalf("got %+v", found.Broken)
			}
			select {
			case err := <-done:
				must(t, err)
				second.wantIntact(acme, 101)
				return
			default:
			}
		}
	})
}

// TestServerDoesNotSealAForgedHead: after entries were cut off and the head was changed to match, the server's next
// entry must not make the chain valid.
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
					t.Error("nothing is logged")
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
		known := []audit.Anchor{{Sequence: end.Sequence, Hash: end.Hash}}
		copied := n.copyOf("audit_heads")
		check := func(want string) {
			t.Helper()
			found, err := n.trail.Verify(t.Context(), acme, known, nil)
			must(t, err)
			if said := reasons(found); want == "" && said != "" || !strings.Contains(said, want) {
				t.Errorf("got %q, want %q", said, want)
			}
		}
		n.tags(acme, "d")
		check("")
		known = append(known, audit.Anchor{Sequence: 4, Hash: n.verify(acme).Hash})
		check("")
		// An older copy of all tables: the database alone cannot show it.
		n.sql("DELETE FROM audit_entries WHERE sequence > 3")
		n.putBack("audit_heads", copied)
		n.wantIntact(acme, 3)
		check("entry #4 is missing")
		n.tags(acme, "x")
		check("entry #4 differs from the anchor")
	})
}
