package automations

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automationrun"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// ListAutomationRuns lists the runs of an automation, newest first.
func (s *Automations) ListAutomationRuns(ctx context.Context, r *v1.ListAutomationRunsRequest) (*v1.ListAutomationRunsResponse, error) {
	digest, err := page.DigestOf("automation_runs", &v1.ListAutomationRunsRequest{DeploymentId: r.GetDeploymentId(), AutomationId: r.GetAutomationId()})
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, apierr.InvalidCursor("cursor")
	}
	if _, err := find(ctx, s.store.Reader, r.GetAutomationId()); err != nil {
		return nil, err
	}
	query := s.store.Reader.AutomationRun.Query().Where(automationrun.AutomationID(r.GetAutomationId()))
	if continued {
		query.Where(automationrun.IDLT(key.ID))
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Desc(automationrun.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &v1.ListAutomationRunsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		run := &v1.AutomationRun{}
		if err := proto.Unmarshal(row.Content, run); err != nil {
			return nil, fmt.Errorf("automation run %d: %w", row.ID, err)
		}
		run.Id, run.At, run.Evaluated, run.Matched = row.ID, store.Timestamp(&row.At), row.Evaluated, row.Matched
		if row.Cause == outbox.CauseScan {
			run.ScanId = row.CauseID
		} else {
			run.TriageChangeId = row.CauseID
		}
		response.Runs = append(response.Runs, run)
	}
	return response, nil
}
