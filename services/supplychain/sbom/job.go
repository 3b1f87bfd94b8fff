package sbom

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	supplychainv1 "github.com/palisade/palisade/gen/palisade/supplychain/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
)

const (
	// queue is the queue of SBOMs: they take seconds, and do not wait for exports.
	queue = "sboms"
	// attempts is how often a job is tried. It fails for good soon: the caller waits.
	attempts = 3
	// timeout is the maximum duration of an attempt.
	timeout = 10 * time.Minute
)

// Background is the background work of SBOMs. baseURL is the public URL of the server. The purge of exports deletes
// their files.
func Background(st *store.Store, baseURL string, calls *traffic.Calls) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &worker{store: st, baseURL: baseURL, calls: calls})
		},
		Queues: []jobs.Queue{{Name: queue, Workers: 2}},
	}
}

// args is the job that writes an SBOM.
type args struct {
	DeploymentID int64 `json:"deployment_id"`
	ExportID     int64 `json:"export_id"`
}

// Kind is the name of the job in the queue.
func (args) Kind() string { return "write_sbom" }

// InsertOpts choose the queue.
func (args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: attempts}
}

type worker struct {
	river.WorkerDefaults[args]
	store   *store.Store
	baseURL string
	calls   *traffic.Calls
}

// Timeout is the maximum duration of an attempt.
func (*worker) Timeout(*river.Job[args]) time.Duration { return timeout }

// Work writes the document.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	in := tenant.NewContext(ctx, job.Args.DeploymentID)
	file, err := exportfile.Begin(in, w.store, job.Args.ExportID)
	if errors.Is(err, exportfile.ErrLost) {
		return nil // expired, or its deployment was deleted
	}
	if err != nil {
		return err
	}
	return exportfile.End(in, w.store, job.Args.ExportID, w.write(in, file))
}

// run is one attempt to write an SBOM.
type run struct {
	*worker
	row     *ent.Export
	request *supplychainv1.GenerateSbomAsyncRequest
	work    *traffic.Work
	project *ent.Project
	parts   *parts
}

func (w *worker) write(ctx context.Context, file *exportfile.Writer) error {
	r := &run{worker: w, row: file.Export(), request: &supplychainv1.GenerateSbomAsyncRequest{}, work: w.calls.Beside(), parts: newParts(maxPlaces)}
	if err := proto.Unmarshal(r.row.Request, r.request); err != nil {
		return fmt.Errorf("request of SBOM %d: %w", r.row.ID, err)
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	document := &bounded{max: maxBytes}
	if err := r.encode(document); err != nil {
		return fmt.Errorf("encode SBOM %d: %w", r.row.ID, err)
	}
	file.Rows = int64(len(r.parts.byRef))
	if err := file.Write(ctx, document.Bytes()); err != nil {
		return err
	}
	return file.Finish(ctx)
}

// asCaller returns the context of the caller with the rights of this moment. The error is NOT_FOUND if the caller does
// not see the project any more.
func (r *run) asCaller(ctx context.Context) (context.Context, error) {
	r.work.Yield(ctx)
	in, err := access.AsReader(ctx, r.store, r.row.DeploymentID, access.Kind(r.row.ActorKind), r.row.ActorID)
	if err != nil {
		return nil, err
	}
	r.project, err = find(in, r.store.Reader, r.request)
	return in, err
}

// bounded is a buffer with a maximum size.
type bounded struct {
	bytes.Buffer
	max int
}

// Write refuses what makes the document too large.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, apierr.FailedPrecondition("the SBOM is larger than %d bytes", b.max)
	}
	return b.Buffer.Write(p)
}
