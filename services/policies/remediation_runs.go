package policies

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/policyrun"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
)

// defaultRuns is the size of a page of runs without a limit.
const defaultRuns = 50

// ListRemediationPolicyRuns lists the runs of a policy, newest first.
func (s *PoliciesV2) ListRemediationPolicyRuns(ctx context.Context, r *policiesv1.ListRemediationPolicyRunsRequest) (*policiesv1.ListRemediationPolicyRunsResponse, error) {
	digest, err := page.DigestOf("remediation_policy_runs", &policiesv1.ListRemediationPolicyRunsRequest{DeploymentId: r.GetDeploymentId(), Slug: r.GetSlug()})
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, apierr.InvalidCursor("cursor")
	}
	id, err := s.store.Reader.RemediationPolicy.Query().Where(remediationpolicy.Slug(r.GetSlug())).OnlyID(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("remediation policy %s not found", apierr.Quote(r.GetSlug()))
	}
	if err != nil {
		return nil, err
	}
	query := s.store.Reader.PolicyRun.Query().Where(policyrun.PolicyID(id))
	if continued {
		query.Where(policyrun.IDLT(key.ID))
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = defaultRuns
	}
	rows, err := query.Order(ent.Desc(policyrun.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &policiesv1.ListRemediationPolicyRunsResponse{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	for _, row := range rows {
		run, err := runOf(row)
		if err != nil {
			return nil, err
		}
		response.Runs = append(response.Runs, run)
	}
	return response, nil
}

func runOf(row *ent.PolicyRun) (*policiesv1.RemediationPolicyRun, error) {
	run := &policiesv1.RemediationPolicyRun{}
	if err := proto.Unmarshal(row.Content, run); err != nil {
		return nil, fmt.Errorf("policy run %d: %w", row.ID, err)
	}
	run.Id, run.At, run.Evaluated, run.Matched = row.ID, store.Timestamp(&row.At), row.Evaluated, row.Matched
	switch row.Cause {
	case outbox.CauseScan:
		run.ScanId = row.CauseID
	case outbox.CauseTriage:
		run.TriageChangeId = row.CauseID
	default:
		run.Day = time.Unix(0, 0).UTC().AddDate(0, 0, int(row.CauseID)).Format(time.DateOnly)
	}
	return run, nil
}
