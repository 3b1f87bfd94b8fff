package automations

import (
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/triagechangefinding"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/scans/blocking"
)

// event is what a job is about.
type event struct {
	outbox.Automate
	trigger v1.TriggerSource
	// scan is the scan; nil for other causes.
	scan *ent.Scan
	// evaluated is the number of its findings.
	evaluated int64
}

// eventOf reads the event of a job; nil if its project was deleted.
func eventOf(ctx context.Context, db *ent.Client, args outbox.Automate) (*event, error) {
	if args.Cause == outbox.CauseTriage {
		return &event{Automate: args, trigger: v1.TriggerSource_TRIGGER_SOURCE_ISSUE_TRIAGED}, nil
	}
	ended, err := db.Scan.Query().Where(scan.ID(args.ID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	return &event{Automate: args, trigger: v1.TriggerSource_TRIGGER_SOURCE_SCAN, scan: ended}, err
}

func (e *event) fullScan() string {
	if e.scan == nil {
		return ""
	}
	return fmt.Sprint(e.scan.IsFullScan)
}

// each yields the ids of the event's findings, in parts.
func (e *event) each(ctx context.Context, db *ent.Client, yield func(ids []int64) error) error {
	switch e.Cause {
	case outbox.CauseScan:
		return pages(func(after int64) ([]int64, int64, error) { return e.ofScan(ctx, db, after) }, yield)
	case outbox.CauseTriage:
		return pages(func(after int64) ([]int64, int64, error) { return e.triaged(ctx, db, after) }, yield)
	}
	return eachOpen(ctx, db, yield)
}

// pages yields pages until one is not full. next reads the ids after a key, and returns the last key.
func pages(next func(after int64) (ids []int64, last int64, err error), yield func(ids []int64) error) error {
	for after := int64(0); ; {
		ids, last, err := next(after)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := yield(ids); err != nil || len(ids) < findingsAtOnce {
			return err
		}
		after = last
	}
}

// scanKinds are the events of scans that trigger automations.
var scanKinds = []string{"created", "reopened"}

func (e *event) ofScan(ctx context.Context, db *ent.Client, after int64) (ids []int64, last int64, err error) {
	rows, err := db.FindingEvent.Query().
		Where(findingevent.AtGTE(e.scan.StartedAt), findingevent.AtLTE(e.At), findingevent.ScanID(e.ID), findingevent.IDGT(after), store.OneOf(findingevent.FieldKind, scanKinds)).
		Order(ent.Asc(findingevent.FieldID)).Limit(findingsAtOnce).Select(findingevent.FieldID, findingevent.FieldFindingID).All(ctx)
	for _, row := range rows {
		ids, last = append(ids, row.FindingID), row.ID
	}
	return ids, last, err
}

func (e *event) triaged(ctx context.Context, db *ent.Client, after int64) (ids []int64, last int64, err error) {
	rows, err := db.TriageChangeFinding.Query().Where(triagechangefinding.ChangeID(e.ID), triagechangefinding.FindingIDGT(after)).
		Order(ent.Asc(triagechangefinding.FieldFindingID)).Limit(findingsAtOnce).Select(triagechangefinding.FieldFindingID).All(ctx)
	for _, row := range rows {
		ids, last = append(ids, row.FindingID), row.FindingID
	}
	return ids, last, err
}

// eachOpen yields the findings that scans report now, of the primary branches of all projects that are not archived.
func eachOpen(ctx context.Context, db *ent.Client, yield func(ids []int64) error) error {
	return pages(func(after int64) ([]int64, int64, error) {
		rows, err := db.Project.Query().Where(project.IDGT(after), project.ArchivedAtIsNil()).Order(ent.Asc(project.FieldID)).Limit(findingsAtOnce).
			Select(project.FieldID, project.FieldPrimaryBranch, project.FieldDefaultBranch).All(ctx)
		ids, last := make([]int64, len(rows)), int64(0)
		for i, row := range rows {
			ids[i], last = row.ID, row.ID
			if err := eachOpenOf(ctx, db, row, yield); err != nil {
				return nil, 0, err
			}
		}
		return ids, last, err
	}, func([]int64) error { return nil })
}

func eachOpenOf(ctx context.Context, db *ent.Client, of *ent.Project, yield func(ids []int64) error) error {
	return pages(func(after int64) ([]int64, int64, error) {
		ids, err := db.Finding.Query().
			Where(finding.ProjectID(of.ID), finding.Ref(blocking.Primary(of)), finding.State(lifecycle.Unresolved), finding.MergedIntoIsNil(), finding.IDGT(after)).
			Order(ent.Asc(finding.FieldID)).Limit(findingsAtOnce).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return nil, 0, err
		}
		return ids, ids[len(ids)-1], nil
	}, yield)
}
