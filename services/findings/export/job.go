package export

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/export"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/exportfile"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/traffic"
)

const (
	// queue is the queue of exports: they take minutes, and no other job waits for them.
	queue = "exports"
	// attempts is how often a job is tried. It fails for good soon: the caller waits.
	attempts = 3
	// timeout is the maximum duration of an attempt.
	timeout = 4 * time.Hour
	// purgeEvery is how often expired files are deleted.
	purgeEvery = time.Hour
)

// Background is the background work of exports. baseURL is the public URL of the server.
func Background(st *store.Store, baseURL string, calls *traffic.Calls, log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &worker{store: st, baseURL: baseURL, calls: calls, log: log})
			jobs.AddWorker(workers, &purgeWorker{store: st})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(purgeEvery, purge{})},
		Queues:   []jobs.Queue{{Name: queue, Workers: 2}},
	}
}

// args is the job that writes the file of an export.
type args struct {
	DeploymentID int64 `json:"deployment_id"`
	ExportID     int64 `json:"export_id"`
}

// Kind is the name of the job in the queue.
func (args) Kind() string { return "export_findings" }

// InsertOpts choose the queue.
func (args) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queue, MaxAttempts: attempts}
}

type worker struct {
	river.WorkerDefaults[args]
	store   *store.Store
	baseURL string
	calls   *traffic.Calls
	log     *slog.Logger
}

// Timeout is the maximum duration of an attempt.
func (*worker) Timeout(*river.Job[args]) time.Duration { return timeout }

// Work writes the file from its beginning. Another attempt starts again: what was selected first may have changed.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	in := tenant.NewContext(ctx, job.Args.DeploymentID)
	row, err := w.store.Reader.Export.Query().Where(export.ID(job.Args.ExportID)).Only(in)
	if ent.IsNotFound(err) {
		return nil // expired, or its deployment was deleted
	}
	if err != nil {
		return err
	}
	return exportfile.End(in, w.store, row.ID, w.write(in, row))
}

// run is one attempt to write a file.
type run struct {
	*worker
	request *findingsv1.ExportIssuesRequest
	format  format
	file    *exportfile.Writer
	catalog *catalog
	work    *traffic.Work
	kind    kind
	now     time.Time
}

func (w *worker) write(in context.Context, row *ent.Export) error {
	request := &findingsv1.ExportIssuesRequest{}
	if err := proto.Unmarshal(row.Request, request); err != nil {
		return fmt.Errorf("request of export %d: %w", row.ID, err)
	}
	of, known := kinds[row.Format]
	if !known {
		return apierr.FailedPrecondition("this version of the server does not write %s", row.Format)
	}
	deployment, err := w.store.Reader.Deployment.Get(in, row.DeploymentID)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := exportfile.Begin(in, w.store, row.ID)
	if err != nil {
		return err
	}
	r := &run{worker: w, request: request, file: file, catalog: newCatalog(), work: w.calls.Beside(), kind: of, now: store.Time(row.CreatedAt)}
	r.format = of.new(&about{
		id: row.ID, deploymentID: row.DeploymentID, deployment: deployment.Name, slug: deployment.Slug, baseURL: w.baseURL, created: r.now,
		lookup: lookup{w.store.Reader},
	})
	if err := r.put(in)(r.format.begin()); err != nil {
		return err
	}
	if err := r.all(in); err != nil {
		return err
	}
	if err := r.put(in)(r.format.end(in)); err != nil {
		return err
	}
	return file.Finish(in)
}

// put writes what a format returns.
func (r *run) put(ctx context.Context) func([]byte, error) error {
	return func(p []byte, err error) error {
		if err != nil {
			return err
		}
		return r.file.Write(ctx, p)
	}
}

// asCaller returns the context and the filter of the caller, with the teams of this moment. The projects of a team that
// the caller leaves are missing in the rest of the file.
func (r *run) asCaller(ctx context.Context) (context.Context, []predicate.Finding, error) {
	row := r.file.Export()
	in, err := access.AsReader(ctx, r.store, row.DeploymentID, access.Kind(row.ActorKind), row.ActorID)
	if err != nil {
		return nil, nil, err
	}
	conditions := issuefilter.WhereOfAll
	if r.kind.backup {
		conditions = issuefilter.WhereOfBackup
	}
	where, err := conditions(in, r.request.GetFilter(), r.now)
	if err != nil {
		return nil, nil, err
	}
	return in, append(append(where, ofTypes(r.request)...), r.kind.only...), nil
}

// all writes all findings, in groups if the format has them.
func (r *run) all(ctx context.Context) error {
	f, ok := r.format.(grouped)
	if !ok {
		return walk(ctx, r.store, r.asCaller, r.some)
	}
	in, where, err := r.asCaller(ctx)
	if err != nil {
		return err
	}
	list, err := groups(in, r.store.Reader, where)
	if err != nil {
		return err
	}
	for _, g := range list {
		if err := r.put(ctx)(f.group(ctx, g)); err != nil {
			return err
		}
		where := func(ctx context.Context) (context.Context, []predicate.Finding, error) {
			in, where, err := r.asCaller(ctx)
			return in, append(where, g.where()...), err
		}
		if err := walk(ctx, r.store, where, r.some); err != nil {
			return err
		}
	}
	return nil
}

// some writes some findings.
func (r *run) some(ctx context.Context, ids []int64) error {
	r.work.Yield(ctx)
	row := r.file.Export()
	in, err := access.AsReader(ctx, r.store, row.DeploymentID, access.Kind(row.ActorKind), row.ActorID)
	if err != nil {
		return err
	}
	b, err := r.catalog.read(in, r.store.Reader, ids, r.format.needs())
	if err != nil {
		return err
	}
	r.file.Rows += int64(len(b.rows))
	return r.put(ctx)(r.format.batch(ctx, b))
}

// purge is the periodic job that deletes expired files.
type purge struct{}

// Kind is the name of the job in the queue.
func (purge) Kind() string { return "purge_exports" }

// InsertOpts prevent a backlog of runs while no worker is up.
func (purge) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = queue
	return opts
}

type purgeWorker struct {
	river.WorkerDefaults[purge]
	store *store.Store
}

// Work deletes the expired files of all deployments.
func (w *purgeWorker) Work(ctx context.Context, _ *river.Job[purge]) error {
	return exportfile.Purge(ctx, w.store)
}
