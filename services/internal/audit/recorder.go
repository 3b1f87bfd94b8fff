package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// Call is the call or job that entries describe.
type Call struct {
	Actor Actor
	// Method is the full gRPC method, or the job's kind.
	Method string
	// RequestID and Remote identify the call; Remote is empty for jobs.
	RequestID, Remote string
	// Request is nil for jobs.
	Request proto.Message
	// Home is the deployment for changes under tenant.System; 0 means none.
	Home int64
}

// Recorder collects the changes of one call or job, and writes an entry in each transaction with changes. It is
// safe for concurrent use.
type Recorder struct {
	trail *Trail
	call  Call

	mu      sync.Mutex
	open    map[*store.Transaction]*txChanges
	written int
}

// Record returns a context in which Change records changes of the call.
func (t *Trail) Record(ctx context.Context, call Call) (context.Context, *Recorder) {
	r := &Recorder{trail: t, call: call}
	return context.WithValue(ctx, recorderKey{}, r), r
}

// Written returns the number of entries that were committed with changes.
func (r *Recorder) Written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written
}

// txChanges has the changes of one transaction.
type txChanges struct {
	changes map[int64]*changeList // by deployment; 0: none was set
	entries int
}

func (r *Recorder) note(ctx context.Context, kind string, id any, before, after proto.Message) {
	current, ok := store.CurrentTransaction(ctx)
	if !ok {
		panic("audit: Change was called outside of store.Write, or without its context: " + kind)
	}
	deploymentID, ok := tenant.FromContext(ctx)
	if !ok {
		deploymentID = r.call.Home
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.changesOf(current)
	list := p.changes[deploymentID]
	if list == nil {
		list = &changeList{}
		p.changes[deploymentID] = list
	}
	list.add(kind, id, before, after)
}

// changesOf returns the changes of the transaction. r.mu must be held.
func (r *Recorder) changesOf(current *store.Transaction) *txChanges {
	p := r.open[current]
	if p == nil {
		p = &txChanges{changes: map[int64]*changeList{}}
		if r.open == nil {
			r.open = map[*store.Transaction]*txChanges{}
		}
		r.open[current] = p
		current.BeforeCommit(func(ctx context.Context, tx *ent.Tx) error { return r.write(ctx, tx, p) })
		current.OnEnd(func(committed bool) { r.end(current, p, committed) })
	}
	return p
}

// Ensure gives the transaction of ctx an entry without changes in each deployment, unless Change has recorded some.
func (r *Recorder) Ensure(ctx context.Context, deployments []int64) {
	current, ok := store.CurrentTransaction(ctx)
	if !ok {
		panic("audit: Ensure was called outside of store.Write")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.changesOf(current)
	if len(p.changes) > 0 {
		return
	}
	for _, id := range deployments {
		p.changes[id] = &changeList{}
	}
}

// write adds the entries before the commit. It orders them by deployment: transactions that lock several heads must
// lock them in the same order.
func (r *Recorder) write(ctx context.Context, tx *ent.Tx, p *txChanges) error {
	for _, deploymentID := range slices.Sorted(maps.Keys(p.changes)) {
		if deploymentID == 0 {
			if r.call.Actor.Kind == KindJob || r.call.Actor.Kind == KindHost {
				return fmt.Errorf("audit: %s made a change under tenant.System without a deployment: call Change with the context of a deployment", r.call.Method)
			}
			continue // the caller belongs to no deployment; the interceptor chain counts that
		}
		if err := r.trail.append(ctx, tx, r.call, deploymentID, codes.OK, p.changes[deploymentID].close()); err != nil {
			return err
		}
		p.entries++
	}
	return nil
}

func (r *Recorder) end(current *store.Transaction, p *txChanges, committed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, current)
	if committed {
		r.written += p.entries
	}
}

var errNoActor = errors.New("audit: a change without an actor: code that accepts callers without a credential must set one (audit.Begin)")
