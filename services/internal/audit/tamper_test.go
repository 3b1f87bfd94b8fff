package audit_test

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
)

// forged returns the statement that adds an entry copied from acme's last.
func forged(deployment, sequence, hash string) string {
	return "INSERT INTO audit_entries (deployment_id, sequence, actor_kind, actor_id, method, code, request, request_id, remote, at, hash) SELECT " +
		deployment + ", " + sequence + ", actor_kind, 8, method, code, request, request_id, remote, at , " + hash + " FROM (SELECT * FROM audit_entries ORDER BY deployment_id, id DESC LIMIT 1) AS x"
}

// outside is the statement that adds an entry outside acme's chain.
const outside = "INSERT INTO audit_entries (deployment_id, sequence, actor_kind, actor_id, method, code, request, request_id, remote, at) " +
	"VALUES (1, 0, 'user', 8, '/x/Y', 'OK', '{}', 'r', '', 1)"

// rehash changes the actor of the third entry, and gives it and all later entries consistent hashes without the
// key.
func rehash(n *node) {
	n.sql("UPDATE audit_entries SET actor_id = 8" + of + "= 3")
	_, writer := n.store.DB()
	previous := n.entries(acme)[1].Hash
	for _, e := range n.entries(acme)[2:] {
		hash := sha256.Sum256(append([]byte(fmt.Sprint(e.ActorID, e.Method, e.At)), previous...))
		_, err := writer.ExecContext(n.t.Context(), "UPDATE audit_entries SET previous_hash = $1, hash = $2 WHERE id = $3", previous, hash[:], e.ID)
		must(n.t, err)
		previous = hash[:]
	}
	_, err := writer.ExecContext(n.t.Context(), "UPDATE audit_heads SET hash = $1 WHERE deployment_id = 1", previous)
	must(n.t, err)
}

func (n *node) setting(name string) []byte {
	n.t.Helper()
	row, err := n.store.Reader.Setting.Query().Where(setting.Name(name)).Only(tenant.System(n.t.Context()))
	must(n.t, err)
	return row.Value
}

// copyOf copies a table, as an attacker would for later use.
func (n *node) copyOf(table string) string {
	n.t.Helper()
	name := fmt.Sprintf("copy_%d", len(n.t.Name()))
	n.sql("DROP TABLE IF EXISTS " + name)
	n.sql("CREATE TABLE " + name + " AS SELECT * FROM " + table)
	return name
}

func (n *node) putBack(table, from string) {
	n.t.Helper()
	n.sql("DELETE FROM " + table)
	n.sql("INSERT INTO " + table + " SELECT * FROM " + from)
	n.sql("DROP TABLE " + from)
}

// swap swaps two entries.
func swap(n *node) {
	n.sql("UPDATE audit_entries SET sequence = 1000 WHERE deployment_id = 1 AND sequence = 3")
	n.sql("UPDATE audit_entries SET sequence = 3 WHERE deployment_id = 1 AND sequence = 4")
	n.sql("UPDATE audit_entries SET sequence = 4 WHERE deployment_id = 1 AND sequence = 1000")
}

// of is the start of a condition on acme's entries.
const of = " WHERE deployment_id = 1 AND sequence "

// tamperings are attacks on the database, and what verification must report.
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
	{"changes of another form", []string{`UPDATE audit_entries SET changes = '{}'` + of + "= 3"}, nil, []string{"#3", "edited"}},
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
	// The following attacks do not change the chain, or make it look as if there had never been one.
	{"all numbers set to 0, and the head removed", []string{"UPDATE audit_entries SET sequence = 0", "DELETE FROM audit_heads"}, nil,
		[]string{"origin", "removed", "5 entries were taken out"}},
	{"all numbers set to 0", []string{"UPDATE audit_entries SET sequence = 0"}, nil, []string{"#1 to #5", "5 entries were taken out"}},
	{"negative numbers", []string{"UPDATE audit_entries SET sequence = -sequence", "DELETE FROM audit_heads"}, nil, []string{"taken out"}},
	{"all numbers set to 0, and the hashes removed", []string{"UPDATE audit_entries SET sequence = 0, hash = NULL, previous_hash = NULL", "DELETE FROM audit_heads"}, nil,
		[]string{"origin", "5 entries without a place in the trail were added"}},
	{"everything removed", []string{"DELETE FROM audit_entries", "DELETE FROM audit_heads"}, nil, []string{"origin", "removed"}},
	{"everything removed, and an entry forged", []string{"DELETE FROM audit_entries", "DELETE FROM audit_heads", outside}, nil,
		[]string{"origin", "1 entries without a place"}},
	{"everything of one deployment removed", []string{"DELETE FROM audit_entries WHERE deployment_id = 1", "DELETE FROM audit_heads WHERE deployment_id = 1"}, nil,
		[]string{"origin", "removed"}},
	{"everything removed but an empty head", []string{"DELETE FROM audit_entries", "UPDATE audit_heads SET sequence = 0, hash = NULL, seal = NULL"}, nil, []string{"head", "forged"}},
	{"everything removed, head and origin", []string{"DELETE FROM audit_entries", "UPDATE audit_heads SET sequence = 0, hash = NULL, seal = NULL, origin = NULL"}, nil,
		[]string{"head", "forged", "origin"}},
	{"everything removed, and a head of no deployment", []string{"DELETE FROM audit_entries", "DELETE FROM audit_heads", "INSERT INTO audit_heads (deployment_id, sequence) VALUES (1, 0)"}, nil,
		[]string{"head", "origin"}},
	{"the origin removed", []string{"UPDATE audit_heads SET origin = NULL"}, nil, []string{"origin", "removed"}},
	{"the origin edited", []string{"UPDATE audit_heads SET origin = seal"}, nil, []string{"origin", "edited"}},
	{"the origin cut", []string{"UPDATE audit_heads SET origin = hash"}, nil, []string{"origin", "edited"}},
	{"the origin of another deployment", []string{"UPDATE audit_heads SET origin = (SELECT origin FROM audit_heads WHERE deployment_id = 2) WHERE deployment_id = 1"}, nil,
		[]string{"origin", "another deployment"}},
	{"everything of another deployment", []string{"DELETE FROM audit_entries WHERE deployment_id = 1", "DELETE FROM audit_heads WHERE deployment_id = 1",
		"UPDATE audit_entries SET deployment_id = 1", "UPDATE audit_heads SET deployment_id = 1"}, nil, []string{"#1", "moved", "forged", "origin"}},
	{"a forged entry outside of the chain", []string{forged("1", "0", "NULL")}, nil, []string{"1 entries without a place in the trail were added"}},
	{"a forged old entry outside of the chain", []string{strings.Replace(forged("1", "0", "NULL"), ", at ", ", 1 ", 1)}, nil, []string{"added"}},
	{"a forged entry with a hash outside of the chain", []string{forged("1", "0", "hash")}, nil, []string{"taken out"}},
	{"a forged entry at the end", []string{forged("1", "6", "hash")}, nil, []string{"#6", "added"}},
	{"a forged entry at the end, without a hash", []string{forged("1", "6", "NULL")}, nil, []string{"#6", "added"}},
	{"a forged entry at the end, with the head", []string{forged("1", "6", "hash"), "UPDATE audit_heads SET sequence = 6 WHERE deployment_id = 1"}, nil, []string{"#6", "forged"}},
	{"an entry of the middle replaced by another", []string{"DELETE FROM audit_entries" + of + "= 3", forged("1", "3", "hash")}, nil, []string{"#3", "edited"}},
	{"hashes recomputed from the middle on", nil, rehash, []string{"#3", "edited"}},
	{"hashes recomputed from the beginning", nil, func(n *node) {
		n.sql("UPDATE audit_heads SET sequence = 0")
		rehash(n)
	}, []string{"#3", "edited", "forged"}},
	{"the seal removed", []string{"UPDATE audit_heads SET seal = NULL"}, nil, []string{"head", "forged"}},
	{"the head's number edited", []string{"UPDATE audit_heads SET sequence = 9"}, nil, []string{"head", "forged"}},
	{"the head's hash edited", []string{"UPDATE audit_heads SET hash = seal"}, nil, []string{"head", "forged"}},
	{"an older head", nil, func(n *node) {
		old := n.copyOf("audit_heads")
		n.tags(acme, "f")
		n.putBack("audit_heads", old)
	}, []string{"older", "#5"}},
	{"the key put back to one without origins", nil, func(n *node) {
		_, writer := n.store.DB()
		key, err := n.keyring.Unseal(n.setting("audit_key"), []byte("audit_key"))
		must(n.t, err)
		sealed, err := n.keyring.Seal(key[:32], []byte("audit_key"))
		must(n.t, err)
		_, err = writer.ExecContext(n.t.Context(), "UPDATE settings SET value = $1 WHERE name = 'audit_key'", sealed)
		must(n.t, err)
		n.trail, err = audit.Read(n.t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
		must(n.t, err)
	}, []string{"key", "older copy"}},
	{"the method of the first changed, and its number", []string{"UPDATE audit_entries SET method = '/x/Y', sequence = 100" + of + "= 1"}, nil, []string{"entry #1", "removed"}},
	{"two removed, and the rest moved up", nil, func(n *node) {
		n.sql("DELETE FROM audit_entries" + of + "IN (1, 2)")
		for _, s := range []string{"3", "4", "5"} {
			n.sql("UPDATE audit_entries SET sequence = sequence - 2" + of + "= " + s)
		}
	}, []string{"#1", "moved"}},
}

func TestVerifyFinds(t *testing.T) {
	t.Parallel()
	if len(tamperings) < 38 {
		t.Fatalf("only %d ways to tamper", len(tamperings))
	}
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for _, c := range tamperings {
			t.Run(c.name, func(t *testing.T) {
				n := n.fresh(t)
				key := n.setting("audit_key")
				n.tags(acme, "a", "b", "c", "d", "e")
				n.tags(globex, "a", "b")
				n.wantIntact(acme, 5)
				for _, statement := range c.tamper {
					n.sql(statement)
				}
				if c.do != nil {
					c.do(n)
				}
				n.wantBroken(acme, c.want...)
				n.wantNothingForgedListed()
				_, writer := n.store.DB()
				_, err := writer.ExecContext(t.Context(), "UPDATE settings SET value = $1 WHERE name = 'audit_key'", key)
				must(t, err)
			})
		}
	})
}

// wantNothingForgedListed requires that Listed returns only unchanged entries, after any tampering.
func (n *node) wantNothingForgedListed() {
	n.t.Helper()
	for _, deployment := range []int64{acme, globex} {
		rows, err := n.store.Reader.AuditEntry.Query().All(tenant.NewContext(n.t.Context(), deployment))
		if err != nil {
			return // invalid JSON is not returned either
		}
		kept, withheld, err := n.trail.Listed(n.t.Context(), deployment, rows)
		must(n.t, err)
		if len(kept)+withheld != len(rows) {
			n.t.Errorf("%d of %d entries, and %d withheld", len(kept), len(rows), withheld)
		}
		for _, e := range kept {
			if e.ActorID != 7 || e.Code != "OK" || e.Sequence <= 0 {
				n.t.Errorf("a forged entry is listed: %v", e)
			}
		}
	}
}

// TestTamperedTrailStaysBroken: later writes and restarts of the server do not repair the trail.
func TestTamperedTrailStaysBroken(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		for name, statements := range map[string][]string{
			"numbers": {"UPDATE audit_entries SET sequence = 0", "DELETE FROM audit_heads"},
			"all":     {"DELETE FROM audit_entries", "DELETE FROM audit_heads"},
			"origin":  {"UPDATE audit_heads SET origin = NULL"},
		} {
			t.Run(name, func(t *testing.T) {
				n := n.fresh(t)
				n.tags(acme, "a", "b")
				for _, s := range statements {
					n.sql(s)
				}
				again, err := audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
				must(t, err)
				n.trail = again
				n.tags(acme, "c", "d")
				n.wantBroken(acme, "origin")
				if _, err := n.trail.Anchor(t.Context(), acme, "acme"); err == nil {
					t.Error("an anchor of a tampered trail is exported")
				}
			})
		}
	})
}

// TestMovedToAnotherStore: verification fails for the trail of a store with another key.
func TestMovedToAnotherStore(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		n.tags(acme, "a", "b")
		n.sql("DELETE FROM settings WHERE name = 'audit_key'")
		if _, err := audit.Read(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler)); err == nil {
			t.Error("a trail is read without its key")
		}
		again, begun, err := audit.Establish(t.Context(), n.store, n.keyring, slog.New(slog.DiscardHandler))
		must(t, err)
		if len(begun) != 0 {
			t.Errorf("deployments %v got an origin although their heads are forged", begun)
		}
		n.trail = again
		n.wantBroken(acme, "#1", "forged", "origin")
	})
}
