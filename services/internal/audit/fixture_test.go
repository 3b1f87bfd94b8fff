package audit_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// The deployments of these tests. Only their ids matter.
const (
	acme   = int64(1)
	globex = int64(2)
)

// node is one process on a database.
type node struct {
	t       *testing.T
	store   *store.Store
	keyring *secret.Keyring
	trail   *audit.Trail
	log     *logBuffer
}

// onEachDatabase runs a test with two nodes on the same database.
func onEachDatabase(t *testing.T, test func(t *testing.T, first, second *node)) {
	t.Helper()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		keyFile := filepath.Join(t.TempDir(), "key")
		test(t, newNode(t, o, keyFile), newNode(t, o, keyFile))
	})
}

func newNode(t *testing.T, o store.Options, keyFile string) *node {
	t.Helper()
	n := &node{t: t, log: &logBuffer{}}
	n.store = storetest.Open(t, o)
	var err error
	n.keyring, err = secret.Open(keyFile, true)
	must(t, err)
	n.trail, err = audit.Open(t.Context(), n.store, n.keyring, slog.New(slog.NewTextHandler(n.log, nil)))
	must(t, err)
	if there, err := n.store.Reader.Deployment.Query().Exist(tenant.System(t.Context())); err != nil || !there {
		must(t, err)
		n.deployments()
	}
	return n
}

// deployments creates acme and globex.
func (n *node) deployments() {
	n.t.Helper()
	must(n.t, n.store.Write(tenant.System(n.t.Context()), func(ctx context.Context, tx *ent.Tx) error {
		for id, slug := range map[int64]string{acme: "acme", globex: "globex"} {
			if err := tx.Deployment.Create().SetID(id).SetSlug(slug).SetName(slug).SetCreatedAt(store.Now()).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	}))
}

// fresh returns the node for a subtest, on a database without entries.
func (n *node) fresh(t *testing.T) *node {
	of := *n
	of.t = t
	for _, table := range []string{"audit_entries", "audit_heads", "tags", "deployments"} {
		of.sql("DELETE FROM " + table)
	}
	of.deployments()
	return &of
}

func ada(home int64) audit.Call {
	return audit.Call{
		Actor:  audit.Actor{Kind: "user", ID: 7, Name: "ada@acme.test", UserID: 7},
		Method: projectsv1.ProjectsService_UpdateProject_FullMethodName, RequestID: "r-1", Remote: "192.0.2.7",
		Request: &projectsv1.UpdateProjectRequest{DeploymentSlug: "acme", ProjectName: "acme/web"}, Home: home,
	}
}

// call begins a call of ada in a deployment.
func (n *node) call(deployment int64) (context.Context, *audit.Recorder) {
	return n.trail.Record(tenant.NewContext(n.t.Context(), deployment), ada(deployment))
}

// tag creates a tag and records the change.
func (n *node) tag(ctx context.Context, name string) error {
	return n.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return makeTag(ctx, tx, name) })
}

func makeTag(ctx context.Context, tx *ent.Tx, name string) error {
	row, err := tx.Tag.Create().SetName(name).SetCreatedAt(store.Now()).Save(ctx)
	if err != nil {
		return err
	}
	audit.Change(ctx, "tag", row.ID, nil, &projectsv1.Project{Name: name})
	return nil
}

// tags creates tags, each in its own call.
func (n *node) tags(deployment int64, names ...string) {
	n.t.Helper()
	for _, name := range names {
		ctx, _ := n.call(deployment)
		must(n.t, n.tag(ctx, name))
	}
}

func (n *node) entries(deployment int64) []*ent.AuditEntry {
	n.t.Helper()
	rows, err := n.store.Reader.AuditEntry.Query().Order(ent.Asc(auditentry.FieldSequence)).All(tenant.NewContext(n.t.Context(), deployment))
	must(n.t, err)
	return rows
}

func (n *node) countTags() int {
	n.t.Helper()
	count, err := n.store.Reader.Tag.Query().Count(tenant.System(n.t.Context()))
	must(n.t, err)
	return count
}

func (n *node) verify(deployment int64) audit.Report {
	n.t.Helper()
	found, err := n.trail.Verify(n.t.Context(), deployment, nil, nil)
	must(n.t, err)
	return found
}

// wantBroken requires that verification fails with a reason that contains every part.
func (n *node) wantBroken(deployment int64, parts ...string) {
	n.t.Helper()
	found := n.verify(deployment)
	if len(found.Broken) == 0 {
		n.t.Fatalf("nothing is found, want %q", parts)
	}
	said := reasons(found)
	for _, part := range parts {
		if !strings.Contains(said, part) {
			n.t.Errorf("got %q, want %q in it", said, part)
		}
	}
}

func reasons(found audit.Report) string {
	var all []string
	for _, b := range found.Broken {
		all = append(all, b.Reason)
	}
	return strings.Join(all, "; ")
}

func (n *node) wantIntact(deployment, entries int64) {
	n.t.Helper()
	if found := n.verify(deployment); len(found.Broken) > 0 || found.Entries != entries {
		n.t.Fatalf("got %d entries, %+v; want %d and nothing broken", found.Entries, found.Broken, entries)
	}
}

// sql changes the database without the server's knowledge.
func (n *node) sql(statement string) {
	n.t.Helper()
	_, writer := n.store.DB()
	if _, err := writer.ExecContext(n.t.Context(), statement); err != nil {
		n.t.Fatalf("%s: %v", statement, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logBuffer collects the log output.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
