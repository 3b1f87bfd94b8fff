package ticketing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/ticketinginstance"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/ticketing/filing"
	"github.com/palisade/palisade/services/ticketing/tracker"
)

const (
	// syncWorkers is how many instances a node synchronizes at once.
	syncWorkers = 2
	// syncInterval is how often findings and tickets are compared.
	syncInterval = time.Minute
	// syncTimeout applies to one run for one instance.
	syncTimeout = 5 * time.Minute
	// syncBatch is how many tickets one run closes, opens or asks for.
	syncBatch = 50
)

func (d *desk) background(log *slog.Logger) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &dueWorker{desk: d})
			jobs.AddWorker(workers, &syncWorker{desk: d, log: log})
			jobs.AddWorker(workers, &fileWorker{desk: d, log: log})
		},
		Periodic: []*river.PeriodicJob{jobs.Every(syncInterval, dueTickets{})},
		Queues:   []jobs.Queue{{Name: filing.Queue, Workers: syncWorkers}},
	}
}

// dueTickets is the periodic job that starts the runs of all instances.
type dueTickets struct{}

// Kind is the name in the queue.
func (dueTickets) Kind() string { return "due_tickets" }

// InsertOpts keeps jobs from piling up while no node works.
func (dueTickets) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

// syncTickets is a run for one instance.
type syncTickets struct {
	DeploymentID int64 `json:"deployment_id"`
	InstanceID   int64 `json:"instance_id"`
}

// Kind is the name in the queue.
func (syncTickets) Kind() string { return "sync_tickets" }

// InsertOpts has one run wait for an instance. A run that fails is not repeated: the next one follows in a minute.
func (syncTickets) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue, opts.MaxAttempts = filing.Queue, 1
	return opts
}

type dueWorker struct {
	river.WorkerDefaults[dueTickets]
	*desk
}

// Work starts a run for each instance whose settings ask for work.
func (w *dueWorker) Work(ctx context.Context, _ *river.Job[dueTickets]) error {
	instances, err := w.store.Reader.TicketingInstance.Query().Where(ticketinginstance.Refused(false), busy).
		Select(ticketinginstance.FieldID, ticketinginstance.FieldDeploymentID).All(tenant.System(ctx))
	if err != nil {
		return err
	}
	for _, i := range instances {
		err := w.store.Write(tenant.NewContext(ctx, i.DeploymentID), func(ctx context.Context, _ *ent.Tx) error {
			return jobs.FromContext(ctx).Enqueue(ctx, syncTickets{DeploymentID: i.DeploymentID, InstanceID: i.ID}, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// busy selects the instances that create tickets without a call, or close them on either side.
var busy predicate.TicketingInstance = ticketinginstance.Or(
	ticketinginstance.CloseAtNEQ(""), ticketinginstance.ClosedStateNEQ(""), ticketinginstance.AutomaticAfterGT(0))

type syncWorker struct {
	river.WorkerDefaults[syncTickets]
	*desk
	log *slog.Logger
}

// Timeout implements river.Worker.
func (*syncWorker) Timeout(*river.Job[syncTickets]) time.Duration { return syncTimeout }

// Work brings findings and tickets of an instance together. It may run again at any point.
func (w *syncWorker) Work(ctx context.Context, job *river.Job[syncTickets]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	instance, err := w.store.Reader.TicketingInstance.Query().Where(ticketinginstance.ID(job.Args.InstanceID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	at, err := w.open(instance)
	if err != nil {
		return err
	}
	s := &syncing{desk: w.desk, instance: instance, tracker: at, log: w.log}
	for _, step := range []func(context.Context) error{s.createForNew, s.closeDone, s.openAgain, s.ask} {
		if err = step(ctx); err != nil {
			break
		}
	}
	if noted := w.note(context.WithoutCancel(ctx), instance, err); noted != nil || connect.ErrorText(err) == "" {
		return errors.Join(noted, err)
	}
	w.log.InfoContext(ctx, "an issue tracker does not answer", "instance_id", instance.ID, "error", err)
	return nil
}

// syncing is one run.
type syncing struct {
	*desk
	instance *ent.TicketingInstance
	tracker  tracker.Tracker
	log      *slog.Logger
}
