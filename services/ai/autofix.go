package ai

import (
	"context"

	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/internal/jobs"
)

// Autofix is the service group "autofix".
type Autofix struct {
	aiv1.UnimplementedAutofixServiceServer
	fixes
}

// NewAutofix serves autofix; queue holds its jobs.
func NewAutofix(a *Assistant, queue *jobs.Jobs) *Autofix {
	return &Autofix{fixes: fixes{Assistant: a, jobs: queue}}
}

// CreateAutofix orders a fix, or returns what blocks it.
func (s *Autofix) CreateAutofix(ctx context.Context, r *aiv1.CreateAutofixRequest) (*aiv1.CreateAutofixResponse, error) {
	why, err := s.order(ctx, fixOrder{findingID: r.GetIssueId()})
	if err != nil {
		return nil, err
	}
	if why != nil {
		return &aiv1.CreateAutofixResponse{Errors: []*aiv1.AutofixError{{ErrorType: why.kind, Message: why.text}}}, nil
	}
	return &aiv1.CreateAutofixResponse{Success: true}, nil
}
