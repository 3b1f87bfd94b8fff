package workflows

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflowrun"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
)

// Limits of watching.
const (
	watchPoll      = 500 * time.Millisecond
	watchHeartbeat = 15 * time.Second
	// watchLength bounds a stream, so that a credential that was revoked does not go on reading.
	watchLength = time.Hour
	// maxWatches is how many streams a node serves to all, maxWatchesEach to one deployment.
	maxWatches     = 1000
	maxWatchesEach = 200
)

// WatchJob sends where the steps of a run are until it ends.
func (s *JobReads) WatchJob(r *workflowsv1.WatchJobRequest, stream grpc.ServerStreamingServer[workflowsv1.WatchJobResponse]) error {
	ctx, cancel := context.WithTimeoutCause(stream.Context(), watchLength, errWatchedLong)
	defer cancel()
	run, err := readRun(ctx, s.store.Reader, r.GetJobId(), []string{workflowrun.FieldID, workflowrun.FieldDeploymentID})
	if err != nil {
		return err
	}
	watched, err := s.watchers.join(watchKey{run.DeploymentID, run.ID})
	if err != nil {
		return err
	}
	defer s.watchers.leave(watched)
	return watched.send(ctx, stream.Send, s.watchers.heartbeat)
}

var errWatchedLong = apierr.Unavailable(nil, "the stream has lasted for %v: connect again", watchLength)

// watchKey is a run.
type watchKey struct{ deploymentID, runID int64 }

// watchers share one reader of a run among all streams about it.
type watchers struct {
	store     *store.Store
	poll      time.Duration
	heartbeat time.Duration

	mu      sync.Mutex
	open    map[watchKey]*watchedRun
	streams int
	each    map[int64]int // streams by deployment
}

func newWatchers(st *store.Store) *watchers {
	return &watchers{store: st, poll: watchPoll, heartbeat: watchHeartbeat, open: map[watchKey]*watchedRun{}, each: map[int64]int{}}
}

// watchedRun is a run that at least one stream watches.
type watchedRun struct {
	key     watchKey
	streams int // guarded by the mutex of the watchers
	stop    context.CancelFunc

	mu      sync.Mutex
	state   *runState
	changed chan struct{} // closed when state is replaced
}

// runState is what was read last; it does not change.
type runState struct {
	summary  *workflowsv1.WorkflowJobSummary
	steps    []*workflowsv1.WorkflowStepNode
	revision int64
	ended    bool
	err      error
}

// join begins to read the run unless another stream does already.
func (w *watchers) join(key watchKey) (*watchedRun, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams >= maxWatches || w.each[key.deploymentID] >= maxWatchesEach {
		return nil, apierr.RateLimited(w.heartbeat)
	}
	watched := w.open[key]
	if watched == nil {
		ctx, stop := context.WithCancel(tenant.NewContext(context.Background(), key.deploymentID))
		watched = &watchedRun{key: key, stop: stop, changed: make(chan struct{})}
		w.open[key] = watched
		go w.read(ctx, watched)
	}
	watched.streams++
	w.streams++
	w.each[key.deploymentID]++
	return watched, nil
}

// leave ends the reading when no other stream is left.
func (w *watchers) leave(watched *watchedRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
	if w.each[watched.key.deploymentID]--; w.each[watched.key.deploymentID] == 0 {
		delete(w.each, watched.key.deploymentID)
	}
	if watched.streams--; watched.streams == 0 {
		watched.stop()
		w.forget(watched)
	}
}

// forget makes the next stream about the run begin anew.
func (w *watchers) forget(watched *watchedRun) {
	if w.open[watched.key] == watched {
		delete(w.open, watched.key)
	}
}

// read polls the revision of a run, and the steps when it has grown, until the run ends or nobody watches.
func (w *watchers) read(ctx context.Context, watched *watchedRun) {
	tick := time.NewTicker(w.poll)
	defer tick.Stop()
	last := int64(-1)
	for {
		state, err := w.stateAfter(ctx, watched.key.runID, last)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			state = &runState{err: err}
		}
		if state != nil {
			last = state.revision
			watched.publish(state)
			if state.ended || state.err != nil {
				w.mu.Lock()
				w.forget(watched)
				w.mu.Unlock()
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stateAfter returns nil when the run is as it was at the revision.
func (w *watchers) stateAfter(ctx context.Context, runID, revision int64) (*runState, error) {
	query := w.store.Reader.WorkflowRun.Query().Where(workflowrun.ID(runID))
	query.Select(summaryColumns...)
	run, err := query.Only(ctx)
	switch {
	case ent.IsNotFound(err):
		return nil, apierr.NotFound("job \"%d\" not found", runID)
	case err != nil || run.Revision == revision:
		return nil, err
	}
	steps, err := liveSteps(ctx, w.store.Reader, run)
	if err != nil {
		return nil, err
	}
	return &runState{summary: convertSummary(run), steps: steps.nodes, revision: run.Revision, ended: hasEnded(run)}, nil
}

func (w *watchedRun) publish(state *runState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = state
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watchedRun) now() (*runState, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.changed
}

// send passes on each state that is new to the stream: what is missed while the client reads slowly is in the next.
func (w *watchedRun) send(ctx context.Context, send func(*workflowsv1.WatchJobResponse) error, heartbeat time.Duration) error {
	beat := time.NewTimer(heartbeat)
	defer beat.Stop()
	var sent *runState
	for {
		state, changed := w.now()
		switch {
		case state != nil && state.err != nil:
			return state.err
		case state != nil && state != sent:
			if err := send(state.since(sent)); err != nil {
				return err
			}
			if state.ended {
				return nil
			}
			sent = state
			beat.Reset(heartbeat)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-beat.C:
			if sent != nil {
				if err := send(&workflowsv1.WatchJobResponse{Summary: sent.summary, Revision: sent.revision}); err != nil {
					return err
				}
			}
			beat.Reset(heartbeat)
		}
	}
}

// since returns what differs from an earlier state; everything when there is none.
func (s *runState) since(earlier *runState) *workflowsv1.WatchJobResponse {
	response := &workflowsv1.WatchJobResponse{Summary: s.summary, Revision: s.revision}
	known := map[string]*workflowsv1.WorkflowStepNode{}
	if earlier != nil {
		for _, step := range earlier.steps {
			known[step.GetStepId()] = step
		}
	}
	for _, step := range s.steps {
		if before := known[step.GetStepId()]; before == nil || !proto.Equal(before, step) {
			response.Steps = append(response.Steps, step)
		}
	}
	return response
}
