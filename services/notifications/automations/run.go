package automations

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/remediation"
)

const (
	// findingsAtOnce is the number of findings that are read together.
	findingsAtOnce = 500
	// runTimeout is enough for a scan with hundreds of thousands of new findings.
	runTimeout = 15 * time.Minute
)

// Background returns the jobs that run automations and remediation policies, and shorten their logs.
func Background(st *store.Store, starter *outbox.Starter, log *slog.Logger) jobs.Work {
	e := engine{store: st, starter: starter, log: log}
	return jobs.Work{
		Register: func(workers *river.Workers) {
			jobs.AddWorker(workers, &runWorker{engine: e})
			jobs.AddWorker(workers, &dayWorker{engine: e})
			jobs.AddWorker(workers, &daysWorker{store: st})
			jobs.AddWorker(workers, &retentionWorker{store: st})
		},
		Periodic: []*river.PeriodicJob{
			jobs.Every(time.Hour, runRetention{}), jobs.Every(time.Hour, policyDays{}),
		},
		Queues: []jobs.Queue{{Name: outbox.AutomationQueue, Workers: 2}, {Name: outbox.PolicyQueue, Workers: 2}},
	}
}

// engine evaluates automations and remediation policies on the findings of an event, and acts.
type engine struct {
	store   *store.Store
	starter *outbox.Starter
	log     *slog.Logger
}

// run runs the candidates on an event. policies are the active policies of the deployment.
func (g *engine) run(ctx context.Context, e *event, candidates []*candidate, policies []remediation.Policy) error {
	if len(candidates) == 0 {
		return nil
	}
	if err := g.match(ctx, e, candidates, policies); err != nil {
		return err
	}
	for _, c := range candidates {
		if err := g.act(ctx, e, c); err != nil {
			return fmt.Errorf("%s %d: %w", c.actor, c.id, err)
		}
	}
	return nil
}

// match evaluates the candidates on the findings of the event.
func (g *engine) match(ctx context.Context, e *event, candidates []*candidate, policies []remediation.Policy) error {
	load, err := newLoader(ctx, g.store.Reader, e, policies)
	if err != nil {
		return err
	}
	return e.each(ctx, g.store.Reader, func(ids []int64) error {
		subjects, err := load.load(ctx, ids)
		if err != nil {
			return err
		}
		e.evaluated += int64(len(subjects))
		told, err := g.remembered(ctx, g.store.Reader, candidates, subjects)
		if err != nil {
			return err
		}
		for _, s := range subjects {
			for _, c := range candidates {
				c.consider(s, told)
			}
		}
		return nil
	})
}

// act runs the actions of a candidate and writes its run log, in one transaction. A repeated job does nothing. Only the
// triage of many findings follows in transactions of its own; a repeated job continues it.
func (g *engine) act(ctx context.Context, e *event, c *candidate) error {
	if c.matched == 0 {
		return nil
	}
	workflows, err := g.prepare(ctx, c)
	if err != nil {
		return err
	}
	err = g.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if done, err := c.log.done(ctx, tx, e); err != nil || done {
			c.triageLater(done)
			return err
		}
		if current, err := c.log.current(ctx, g.store, tx); err != nil || !current {
			return err
		}
		a := &actor{engine: g, tx: tx, event: e, candidate: c, workflows: workflows}
		if err := a.run(ctx); err != nil {
			return err
		}
		if c.matched == 0 { // another job was faster
			return nil
		}
		return c.log.write(ctx, tx, a)
	})
	if err != nil {
		return err
	}
	return g.triageInParts(ctx, e, c)
}

type runWorker struct {
	river.WorkerDefaults[outbox.Automate]
	engine
}

// Timeout limits a run.
func (*runWorker) Timeout(*river.Job[outbox.Automate]) time.Duration { return runTimeout }

// Work runs the automations and the remediation policies of an event.
func (w *runWorker) Work(ctx context.Context, job *river.Job[outbox.Automate]) error {
	ctx = tenant.NewContext(ctx, job.Args.DeploymentID)
	e, err := eventOf(ctx, w.store.Reader, job.Args)
	if err != nil || e == nil {
		return err
	}
	rows, err := w.store.Reader.Automation.Query().Where(automation.Active(true), automation.Trigger(e.trigger.String())).Order(ent.Asc(automation.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	policies, err := remediation.Load(ctx, w.store.Reader)
	if err != nil {
		return err
	}
	candidates, err := ofAutomations(rows, policies)
	if err != nil {
		return err
	}
	return w.run(ctx, e, append(candidates, ofPolicies(policies)...), policies)
}
