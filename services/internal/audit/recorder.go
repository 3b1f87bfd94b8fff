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

// Call is the call or job that entries tell of.
type Call struct {
	Actor Actor
	// Method is the full gRPC method, or the kind of the job.
	Method string
	// RequestID and Remote are those of the call; Remote is empty for jobs.
	RequestID, Remote string
	// Request is what was asked for; nil for jobs.
	Request proto.Message
	// Home is the deployment of changes that are made under tenant.System; 0: there is none.
	Home int64
}

// Recorder collects what one call or job changes, and writes an entry with each transaction that changed something. It
// is safe for concurrent use.
type Recorder struct {
	trail *Trail
	call  Call

	mu      sync.Mutex
	open    map[*store.Transaction]*pending
	written int
}

// Record returns a context under which Change writes entries of the call.
func (t *Trail) Record(ctx context.Context, call Call) (context.Context, *Recorder) {
	r := &Recorder{trail: t, call: call}
	return context.WithValue(ctx, recorderKey{}, r), r
}

// Written is how many entries have been committed together with changes.
func (r *Recorder) Written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written
}

// pending is what one transaction changes.
type pending struct {
	changes map[int64]*changeList // by deployment; 0: none was named
	entries int
}

func (r *Recorder) note(ctx context.Context, kind string, id any, before, after proto.Message) {
	current, ok := store.CurrentTransaction(ctx)
	if !ok {
		panic("audit: Change was called outside of store.Write, or with another context than Write gave: " + kind)
	}
	deploymentID, ok := tenant.FromContext(ctx)
	if !ok {
		deploymentID = r.call.Home
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending(current)
	list := p.changes[deploymentID]
	if list == nil {
		list = &changeList{}
		p.changes[deploymentID] = list
	}
	list.add(kind, id, before, after)
}

// pending returns what the transaction changes. r.mu is held.
func (r *Recorder) pending(current *store.Transaction) *pending {
	p := r.open[current]
	if p == nil {
		p = &pending{changes: map[int64]*changeList{}}
		if r.open == nil {
			r.open = map[*store.Transaction]*pending{}
		}
		r.open[current] = p
		current.BeforeCommit(func(ctx context.Context, tx *ent.Tx) error { return r.write(ctx, tx, p) })
		current.OnEnd(func(committed bool) { r.end(current, p, committed) })
	}
	return p
}

// Ensure lets the transaction of ctx have an entry in each of the deployments, without changes, unless Change has noted
// some already.
func (r *Recorder) Ensure(ctx context.Context, deployments []int64) {
	current, ok := store.CurrentTransaction(ctx)
	if !ok {
		panic("audit: Ensure was called outside of store.Write")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending(current)
	if len(p.changes) > 0 {
		return
	}
	for _, id := range deployments {
		p.changes[id] = &changeList{}
	}
}

// write adds the entries of a transaction that is about to be committed, in the order of deployments: two that lock the
// heads of the same ones must not wait for each other.
func (r *Recorder) write(ctx context.Context, tx *ent.Tx, p *pending) error {
	for _, deploymentID := range slices.Sorted(maps.Keys(p.changes)) {
		if deploymentID == 0 {
			if r.call.Actor.Kind == KindJob || r.call.Actor.Kind == KindHost {
				return fmt.Errorf("audit: %s changed something under tenant.System without a deployment: give Change the context of one", r.call.Method)
			}
			continue // the caller belongs to no deployment; the chain counts that
		}
		if err := r.trail.append(ctx, tx, r.call, deploymentID, codes.OK, p.changes[deploymentID].close()); err != nil {
			return err
		}
		p.entries++
	}
	return nil
}

func (r *Recorder) end(current *store.Transaction, p *pending, committed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, current)
	if committed {
		r.written += p.entries
	}
}

var errNobody = errors.New("audit: a change by nobody: whoever lets in callers without a credential says who acts (audit.Begin)")
