package feed

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const deployment = 7

// testKeys are the keys that all nodes of the tests share.
var testKeys = sync.OnceValue(func() *secret.Keyring {
	dir, err := os.MkdirTemp("", "feed")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	keys, err := secret.Open(filepath.Join(dir, "key"), true)
	if err != nil {
		panic(err)
	}
	return keys
})

// newFeed returns a feed that reads often. Each is like a node of its own.
func newFeed(st *store.Store) *Feed {
	f := New(st, testKeys(), time.Hour)
	f.poll, f.linger = 5*time.Millisecond, 0
	return f
}

// caller is the context of a call in the deployment.
func caller(ctx context.Context) context.Context {
	return tenant.NewContext(access.NewContext(ctx, &access.Principal{Kind: access.KindToken, ID: 1}), deployment)
}

// insert writes events for findings with these ids and returns their ids.
func insert(ctx context.Context, tx *ent.Tx, findings ...int64) (ids []int64, err error) {
	rows := make([]*ent.FindingEventCreate, len(findings))
	for i, id := range findings {
		rows[i] = tx.FindingEvent.Create().SetDeploymentID(deployment).SetFindingID(id).SetKind("created").SetFromStatus("").SetToStatus("open").
			SetActorKind("scan").SetActorID(1).SetAt(store.Now())
	}
	written, err := tx.FindingEvent.CreateBulk(rows...).Save(ctx)
	for _, row := range written {
		ids = append(ids, row.ID)
	}
	return ids, err
}

// commit writes events in a transaction of their own.
func commit(t testing.TB, st *store.Store, findings ...int64) (ids []int64) {
	t.Helper()
	err := st.Write(tenant.NewContext(t.Context(), deployment), func(ctx context.Context, tx *ent.Tx) (err error) {
		ids, err = insert(ctx, tx, findings...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// errEnough ends a stream.
var errEnough = errors.New("enough")

// consumer collects what a stream sends.
type consumer struct {
	mu       sync.Mutex
	seen     map[int64]int // by id of the change
	findings map[int64]bool
	token    string
	got      chan struct{} // has a value after each message
	// before is called with each message, before it counts as received. An error ends the stream.
	before func(*findingsv1.WatchFindingsResponse) error
}

func newConsumer() *consumer {
	return &consumer{seen: map[int64]int{}, findings: map[int64]bool{}, got: make(chan struct{}, 1)}
}

func (c *consumer) send(r *findingsv1.WatchFindingsResponse) error {
	if c.before != nil {
		if err := c.before(r); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, change := range r.GetChanges() {
		c.seen[change.GetId()]++
		c.findings[change.GetFinding().GetId()] = true
	}
	c.token = r.GetResumeToken()
	select {
	case c.got <- struct{}{}:
	default:
	}
	return nil
}

func (c *consumer) position() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// missing returns the ids that it did not get.
func (c *consumer) missing(ids []int64) (list []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if c.seen[id] == 0 {
			list = append(list, id)
		}
	}
	return list
}

// await returns when the consumer has all ids.
func (c *consumer) await(t testing.TB, ids ...int64) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for len(c.missing(ids)) > 0 {
		select {
		case <-c.got:
		case <-deadline:
			t.Fatalf("these changes did not arrive: %v", c.missing(ids))
		}
	}
}

// watch starts a stream and returns when its first message has arrived. The result has its error.
func watch(t testing.TB, ctx context.Context, f *Feed, c *consumer, r *findingsv1.WatchFindingsRequest) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f.Watch(ctx, r, c.send) }()
	select {
	case <-c.got:
	case err := <-ended:
		ended <- err
	case <-time.After(2 * time.Minute):
		t.Fatal("no first message")
	}
	return ended
}
