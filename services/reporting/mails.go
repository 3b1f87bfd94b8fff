package reporting

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/notificationrule"
	"github.com/palisade/palisade/ent/tenant"
	reportingv1 "github.com/palisade/palisade/gen/palisade/reporting/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/reporting/cadence"
)

const (
	// dueInterval is how often due reports are looked for.
	dueInterval = time.Minute
	// dueAtOnce is how many due rules are read together.
	dueAtOnce = 100
	// mailQueue is a queue of its own, so that nodes of earlier versions do not claim these jobs during an upgrade.
	mailQueue = "reports"
)

// Mails sends the reports of notification rules on their schedules.
type Mails struct {
	store    *store.Store
	overview *Overview
	base     string
}

// NewMails sends what the overview says. base is the server's public URL.
func NewMails(st *store.Store, overview *Overview, base string) *Mails {
	return &Mails{store: st, overview: overview, base: base}
}

// Background returns the job that sends due reports.
func (m *Mails) Background() jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &mailWorker{mails: m}) },
		Queues:   []jobs.Queue{{Name: mailQueue, Workers: 1}},
		Periodic: []*river.PeriodicJob{jobs.Every(dueInterval, mailArgs{})},
	}
}

// mailArgs is the periodic job that sends due reports.
type mailArgs struct{}

// Kind implements river.JobArgs.
func (mailArgs) Kind() string { return "send_reports" }

// InsertOpts prevents runs from piling up while no node works.
func (mailArgs) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = mailQueue
	return opts
}

type mailWorker struct {
	river.WorkerDefaults[mailArgs]
	mails *Mails
}

// Work implements river.Worker.
func (w *mailWorker) Work(ctx context.Context, _ *river.Job[mailArgs]) error {
	return w.mails.Send(ctx, jobs.FromContext(ctx), time.Now())
}

// Send puts the reports that are due into the ledger of deliveries. A report that fails does not stop the others; it is
// tried again by the next run.
func (m *Mails) Send(ctx context.Context, queue *jobs.Jobs, now time.Time) error {
	var failed error
	var last *ent.NotificationRule
	for {
		query := m.store.Reader.NotificationRule.Query().
			Where(notificationrule.NextReportAtNotNil(), notificationrule.NextReportAtLTE(store.Micros(now)))
		if last != nil {
			query.Where(func(s *entsql.Selector) {
				s.Where(entsql.CompositeGT([]string{s.C(notificationrule.FieldNextReportAt), s.C(notificationrule.FieldID)}, *last.NextReportAt, last.ID))
			})
		}
		due, err := query.Order(ent.Asc(notificationrule.FieldNextReportAt, notificationrule.FieldID)).Limit(dueAtOnce).All(tenant.System(ctx))
		if err != nil {
			return errors.Join(failed, err)
		}
		for _, rule := range due {
			if err := m.send(tenant.NewContext(ctx, rule.DeploymentID), queue, rule, now); err != nil {
				failed = errors.Join(failed, fmt.Errorf("report of notification rule %d: %w", rule.ID, err))
			}
		}
		if len(due) < dueAtOnce {
			return failed
		}
		last = due[len(due)-1]
	}
}

// send writes one delivery. If the server was down, it is about the last period, and earlier ones are left out. Another
// node may have sent it, or somebody may have changed the rule.
func (m *Mails) send(ctx context.Context, queue *jobs.Jobs, rule *ent.NotificationRule, now time.Time) error {
	schedule := &reportingv1.ReportSchedule{}
	if err := proto.Unmarshal(rule.SendReport, schedule); err != nil {
		return err
	}
	due, next := store.Time(*rule.NextReportAt), time.Time{}
	for next = cadence.Next(schedule, due); !next.After(now); next = cadence.Next(schedule, due) {
		due = next
	}
	report, err := m.write(ctx, rule, schedule, due)
	if err != nil {
		return err
	}
	return m.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.NotificationRule.Update().
			Where(notificationrule.ID(rule.ID), notificationrule.IsEnabled(true), notificationrule.NextReportAt(*rule.NextReportAt)).
			SetNextReportAt(store.Micros(next)).SetLastReportAt(store.Micros(now)).Save(ctx)
		if err != nil || n == 0 {
			return err
		}
		return outbox.Report(ctx, tx, queue, rule.ID, report)
	})
}

// Now writes the report that a rule would send now.
func (m *Mails) Now(ctx context.Context, rule *ent.NotificationRule) (payload.Report, error) {
	schedule := &reportingv1.ReportSchedule{}
	if err := proto.Unmarshal(rule.SendReport, schedule); err != nil {
		return payload.Report{}, err
	}
	return m.write(ctx, rule, schedule, time.Now())
}

// write computes the report of a time. It is compared with the day, the seven days or the month before.
func (m *Mails) write(ctx context.Context, rule *ent.NotificationRule, schedule *reportingv1.ReportSchedule, at time.Time) (payload.Report, error) {
	since, until := cadence.Period(schedule, at)
	filters := proto.CloneOf(schedule.GetFilters())
	if filters == nil {
		filters = &reportingv1.ReportFilters{}
	}
	owner, err := m.store.Reader.Deployment.Query().Where(deployment.ID(rule.DeploymentID)).Only(ctx)
	if err != nil {
		return payload.Report{}, err
	}
	link := m.link(owner.Slug, filters, since, until)
	filters.TimePeriod = &reportingv1.TimePeriod{Since: timestamppb.New(since), Until: timestamppb.New(until)}
	before, _ := cadence.Period(schedule, since)
	overview, err := m.overview.GetOverviewReport(ctx, &reportingv1.GetOverviewReportRequest{
		DeploymentId: rule.DeploymentID, Filters: filters,
		CompareWith: &reportingv1.TimePeriod{Since: timestamppb.New(before), Until: timestamppb.New(since)},
	})
	if err != nil {
		return payload.Report{}, err
	}
	return payload.Report{
		DeploymentID: rule.DeploymentID, Name: rule.Name, Overview: overview, Zone: until.Location(), Link: link, SentAt: time.Now(), TenantName: owner.Slug,
	}, nil
}

// link leads to the overview in the console, with the same filters and the same period.
func (m *Mails) link(slug string, filters *reportingv1.ReportFilters, since, until time.Time) string {
	query := url.Values{"since": {since.UTC().Format(time.RFC3339)}, "until": {until.UTC().Format(time.RFC3339)}}
	if text := string(filters.AppendJSON(nil)); proto.Size(filters) > 0 {
		query.Set("filters", text)
	}
	return m.base + "/console/" + slug + "/overview?" + query.Encode()
}
