package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/backtest"
)

// backTestDays is the period of a back-test by default.
const backTestDays = 90

// BackTestRemediationPolicies replays scans with the policies.
func (s *PoliciesV2) BackTestRemediationPolicies(ctx context.Context, r *policiesv1.BackTestRemediationPoliciesRequest) (*policiesv1.BackTestRemediationPoliciesResponse, error) {
	response, err := s.backTest(ctx, r)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, apierr.New(codes.DeadlineExceeded, errorsv1.Reason_REASON_DEADLINE_EXCEEDED,
			"the back-test did not end in time: name projects or fewer days, or raise request-timeout").WithCause(ctx.Err())
	}
	return response, err
}

func (s *PoliciesV2) backTest(ctx context.Context, r *policiesv1.BackTestRemediationPoliciesRequest) (*policiesv1.BackTestRemediationPoliciesResponse, error) {
	days := backTestDays
	if r.Days != nil {
		days = int(r.GetDays())
	}
	to := time.Now()
	from := to.AddDate(0, 0, -days)
	response := &policiesv1.BackTestRemediationPoliciesResponse{From: timestamppb.New(from), To: timestamppb.New(to)}
	bundle, err := s.tested(ctx, r.GetBundle())
	if err != nil {
		return nil, err
	}
	if response.ValidationErrors = bundle.problems; len(bundle.problems) > 0 {
		return response, nil
	}
	response.Warnings = append(warnings(bundle.policies), bundle.warnings...)
	if err := s.knownProjects(ctx, r.GetProjectIds()); err != nil {
		return nil, err
	}
	active, err := remediation.CompileActive(bundle.policies)
	if err != nil {
		return nil, err
	}
	in := backtest.Input{Policies: active, Projects: r.GetProjectIds(), From: store.Micros(from), To: store.Micros(to)}
	if err := s.replay(ctx, in, response); err != nil {
		return nil, err
	}
	return response, nil
}

// tested returns the policies to test: the ones of the bundle, or the stored ones.
func (s *PoliciesV2) tested(ctx context.Context, bundle *policiesv1.RemediationPoliciesBundle) (*checked, error) {
	if bundle == nil {
		current, err := load(ctx, s.store.Reader)
		if err != nil {
			return nil, err
		}
		return &checked{policies: current.policies}, nil
	}
	organization, err := s.store.Reader.Deployment.Query().Only(ctx)
	if err != nil {
		return nil, err
	}
	return check(ctx, s.store.Reader, organization.Slug, bundle)
}

// knownProjects refuses projects that the caller does not see.
func (s *PoliciesV2) knownProjects(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	found, err := s.store.Reader.Project.Query().Where(store.OneOf(project.FieldID, ids)).IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(found, id) {
			return apierr.NotFound("there is no project %d", id)
		}
	}
	return nil
}

// replay replays the scans. One back-test runs at a time, because it needs much memory.
func (s *PoliciesV2) replay(ctx context.Context, in backtest.Input, into *policiesv1.BackTestRemediationPoliciesResponse) error {
	select {
	case s.backTests <- struct{}{}:
		defer func() { <-s.backTests }()
	case <-ctx.Done():
		return ctx.Err()
	}
	counts := newTally(in.Policies)
	summary, err := backtest.Replay(ctx, s.store.Reader, in, counts.add, counts.endProject)
	if err != nil {
		return err
	}
	counts.write(summary, into)
	into.Limits = limitsOf(summary)
	return s.addPaths(ctx, into.GetExamples())
}

// addPaths reads the paths of the examples.
func (s *PoliciesV2) addPaths(ctx context.Context, examples []*policiesv1.BackTestExample) error {
	ids := make([]int64, len(examples))
	for i, example := range examples {
		ids[i] = example.GetFindingId()
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := s.store.Reader.Finding.Query().Modify(store.FoundByIDs(ids)).Select(finding.FieldID, finding.FieldFilePath).All(ctx)
	for _, row := range rows {
		for _, example := range examples {
			if example.GetFindingId() == row.ID && row.FilePath != nil {
				example.Path = *row.FilePath
			}
		}
	}
	return err
}

// limitsOf says what the replay could not know.
func limitsOf(of *backtest.Summary) []string {
	limits := []string{
		"Severities, rules, names, tags, primary branches, reachability, validation of secrets, and verdicts of autotriage are those of now.",
		"Which unchanged findings a scan reported is derived from what was open, and from what the scan analyzed.",
		"Rules in mode block are not replayed; neither are findings that were split or merged since under their former identity.",
	}
	if of.Uncovered > 0 {
		limits = append(limits, fmt.Sprintf("Of %d of %d scans it is no longer stored which tools and files they analyzed; open findings of their products count as reported.",
			of.Uncovered, of.Scans))
	}
	return limits
}
