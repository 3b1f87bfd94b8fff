package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/audit"
)

func TestEntryIsWrittenWithItsChange(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		ctx, recorder := n.call(acme)
		before := &projectsv1.Project{Id: 1 << 60, Name: "acme/web", Tags: []string{"old"}}
		after := &projectsv1.Project{Id: 1 << 60, Name: "acme/web", Tags: []string{"<new> ä 𝄞"}}
		must(t, n.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			audit.Change(ctx, "project", int64(1<<60), before, after)
			audit.Change(ctx, "tag", "new", nil, (*projectsv1.Project)(nil))
			if n.entriesIn(ctx, tx) != 0 {
				t.Error("the entry is not the last statement")
			}
			return nil
		}))
		if recorder.Written() != 1 {
			t.Errorf("%d entries are written, want 1", recorder.Written())
		}
		rows := n.entries(acme)
		if len(rows) != 1 {
			t.Fatalf("%d entries, want 1", len(rows))
		}
		e := rows[0]
		if e.Sequence != 1 || e.ActorKind != "user" || e.ActorID != 7 || e.ActorName != "ada@acme.test" || e.UserID != 7 || e.Code != "OK" ||
			e.RequestID != "r-1" || e.Remote != "192.0.2.7" || e.At == 0 || e.Request != `{"deployment_slug":"acme","project_name":"acme/web"}` {
			t.Errorf("got %+v", e)
		}
		if len(e.Changes) != 2 || e.Changes[0].Kind != "project" || e.Changes[0].ID != "1152921504606846976" || e.Changes[1].ID != "new" {
			t.Fatalf("got %+v", e.Changes)
		}
		var old, changed struct {
			ID   string   `json:"id"`
			Tags []string `json:"tags"`
		}
		must(t, json.Unmarshal(e.Changes[0].Before, &old))
		must(t, json.Unmarshal(e.Changes[0].After, &changed))
		if old.ID != "1152921504606846976" || !slices.Equal(old.Tags, before.Tags) || !slices.Equal(changed.Tags, after.Tags) {
			t.Errorf("got %s and %s", e.Changes[0].Before, e.Changes[0].After)
		}
		if e.Changes[1].Before != nil || e.Changes[1].After != nil {
			t.Errorf("missing sides: %s and %s", e.Changes[1].Before, e.Changes[1].After)
		}
		n.wantIntact(acme, 1)
	})
}

func (n *node) entriesIn(ctx context.Context, tx *ent.Tx) int {
	n.t.Helper()
	count, err := tx.AuditEntry.Query().Count(ctx)
	must(n.t, err)
	return count
}

func TestChangeAndEntryCommitTogether(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		ctx, recorder := n.call(acme)
		broken := errors.New("broken")
		err := n.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			must(t, makeTag(ctx, tx, "a"))
			return broken
		})
		if !errors.Is(err, broken) || n.countTags() != 0 || len(n.entries(acme)) != 0 || recorder.Written() != 0 {
			t.Errorf("a change that failed left %d tags, %d entries (%v)", n.countTags(), len(n.entries(acme)), err)
		}
		func() {
			defer func() { _ = recover() }()
			_ = n.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
				must(t, makeTag(ctx, tx, "a"))
				panic("broken")
			})
		}()
		if n.countTags() != 0 || len(n.entries(acme)) != 0 || recorder.Written() != 0 {
			t.Error("a panic left something")
		}
		must(t, n.tag(ctx, "a"))
		n.sql("ALTER TABLE audit_entries RENAME TO elsewhere")
		if err := n.tag(ctx, "b"); err == nil || n.countTags() != 1 {
			t.Errorf("a change without an entry: %d tags, %v", n.countTags(), err)
		}
		n.sql("ALTER TABLE elsewhere RENAME TO audit_entries")
		must(t, n.tag(ctx, "b"))
		if recorder.Written() != 2 {
			t.Errorf("%d entries are written, want 2: one a transaction", recorder.Written())
		}
		n.wantIntact(acme, 2)
	})
}

func TestDeploymentOfAnEntry(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		note := func(ctx context.Context, call audit.Call, deployments ...int64) error {
			ctx, _ = n.trail.Record(tenant.System(ctx), call)
			return n.store.Write(ctx, func(ctx context.Context, _ *ent.Tx) error {
				for _, id := range deployments {
					inside := ctx
					if id != 0 {
						inside = tenant.NewContext(ctx, id)
					}
					audit.Change(inside, "user", 7, nil, nil)
				}
				return nil
			})
		}
		job := audit.Call{Actor: audit.Actor{Kind: audit.KindJob, ID: 3, Name: "sync"}, Method: "sync"}
		withoutDeployment := ada(0)
		for _, c := range []struct {
			name                 string
			call                 audit.Call
			deployments          []int64
			inAcme, inGlobex     int
			fails                bool
			changesOfTheLastAcme int
		}{
			{"a user's own settings", ada(acme), []int64{0}, 1, 0, false, 1},
			{"a user in a deployment that is not his first", ada(acme), []int64{globex}, 0, 1, false, 0},
			{"one transaction in two deployments", ada(acme), []int64{globex, acme, 0, globex}, 1, 1, false, 2},
			{"a user without a deployment", withoutDeployment, []int64{0}, 0, 0, false, 0},
			{"a job that names it", job, []int64{acme}, 1, 0, false, 1},
			{"a job that does not", job, []int64{0}, 0, 0, true, 0},
			{"nobody", audit.Call{Method: "/x"}, []int64{acme}, 0, 0, true, 0},
		} {
			beforeAcme, beforeGlobex := len(n.entries(acme)), len(n.entries(globex))
			if err := note(t.Context(), c.call, c.deployments...); (err != nil) != c.fails {
				t.Errorf("%s: %v", c.name, err)
			}
			acmes := n.entries(acme)
			if len(acmes)-beforeAcme != c.inAcme || len(n.entries(globex))-beforeGlobex != c.inGlobex {
				t.Errorf("%s: %d and %d entries", c.name, len(acmes)-beforeAcme, len(n.entries(globex))-beforeGlobex)
			}
			if c.inAcme > 0 && len(acmes[len(acmes)-1].Changes) != c.changesOfTheLastAcme {
				t.Errorf("%s: got %+v", c.name, acmes[len(acmes)-1].Changes)
			}
		}
	})
}

func TestBegin(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		// The context that the interceptor chain creates for a caller without a credential.
		ctx, outer := n.trail.Record(tenant.NewContext(t.Context(), acme), audit.Call{Method: "/scm/Receive", RequestID: "r-9", Remote: "192.0.2.9"})
		ctx = audit.Begin(ctx, audit.Actor{Kind: audit.KindHost, Name: "github.com"}, "/scm/Receive")
		must(t, n.tag(ctx, "a"))
		rows := n.entries(acme)
		if len(rows) != 1 || rows[0].ActorKind != "host" || rows[0].ActorName != "github.com" || rows[0].RequestID != "r-9" || rows[0].Remote != "192.0.2.9" {
			t.Errorf("got %+v", rows)
		}
		if outer.Written() != 0 {
			t.Error("the entry counts for the outer recorder")
		}
		if ctx := audit.Begin(t.Context(), audit.Actor{Kind: audit.KindHost}, "/x"); ctx != t.Context() {
			t.Error("Begin does something without a trail")
		}
	})
}

func TestChangeOutsideOfWrite(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		audit.Change(t.Context(), "tag", 1, nil, nil) // no actor, as in tests and server commands
		ctx, _ := n.call(acme)
		defer func() {
			if recover() == nil {
				t.Error("a change whose entry would not be written is accepted")
			}
		}()
		audit.Change(ctx, "tag", 1, nil, nil)
	})
}

func TestAppend(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, n, _ *node) {
		must(t, n.trail.Append(t.Context(), ada(acme), acme, codes.PermissionDenied))
		n.tags(acme, "a")
		must(t, n.trail.Append(t.Context(), ada(acme), acme, codes.NotFound))
		var got []string
		for _, e := range n.entries(acme) {
			got = append(got, e.Code)
		}
		if !slices.Equal(got, []string{"PermissionDenied", "OK", "NotFound"}) {
			t.Errorf("got %v", got)
		}
		n.wantIntact(acme, 3)
	})
}
