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

// Limits of streams.
const (
	watchPoll      = 500 * time.Millisecond
	watchHeartbeat = 15 * time.Second
	// watchLength limits a stream, so that a revoked credential does not keep reading.
	watchLength = time.Hour
	// maxWatches is the maximum number of streams of a node, maxWatchesPerDeployment of one deployment.
	maxWatches              = 1000
	maxWatchesPerDeployment = 200
)

// WatchJob streams the status of a run's steps until the run ends.
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

// watchKey identifies a run.
type watchKey struct{ deploymentID, runID int64 }

// watchers share one reader of a run among all its streams.
type watchers struct {
	store     *store.Store
	poll      time.Duration
	heartbeat time.Duration

	mu            sync.Mutex
	open          map[watchKey]*watchedRun
	streams       int
	perDeployment map[int64]int // streams by deployment
}

func newWatchers(st *store.Store) *watchers {
	return &watchers{store: st, poll: watchPoll, heartbeat: watchHeartbeat, open: map[watchKey]*watchedRun{}, perDeployment: map[int64]int{}}
}

// watchedRun is a run with at least one stream.
type watchedRun struct {
	key     watchKey
	streams int // guarded by the mutex of the watchers
	stop    context.CancelFunc

	mu      sync.Mutex
	state   *runState
	changed chan struct{} // closed when state is replaced
}

// runState is the last state read. It is immutable.
type runState struct {
	summary  *workflowsv1.WorkflowJobSummary
	steps    []*workflowsv1.WorkflowStepNode
	revision int64
	ended    bool
	err      error
}

// join adds a stream and starts the reader of the run if there is none.
func (w *watchers) join(key watchKey) (*watchedRun, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams >= maxWatches || w.perDeployment[key.deploymentID] >= maxWatchesPerDeployment {
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
	w.perDeployment[key.deploymentID]++
	return watched, nil
}

// leave removes a stream and stops the reader after the last one.
func (w *watchers) leave(watched *watchedRun) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
	if w.perDeployment[watched.key.deploymentID]--; w.perDeployment[watched.key.deploymentID] == 0 {
		delete(w.perDeployment, watched.key.deploymentID)
	}
	if watched.streams--; watched.streams == 0 {
		watched.stop()
		w.forget(watched)
	}
}

// forget removes the run, so that the next stream starts a new reader.
func (w *watchers) forget(watched *watchedRun) {
	if w.open[watched.key] == watched {
		delete(w.open, watched.key)
	}
}

// read polls the revision of a run, and reads the steps when it has grown, until the run ends or no stream is left.
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

// stateAfter returns nil if the run is still at the revision.
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

// send sends each new state. If the client reads slowly, the next message contains the skipped changes.
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

// since returns the difference from an earlier state; everything if that is nil.
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
