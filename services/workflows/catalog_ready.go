package workflows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
)

// readiness says what steps lack. It asks each kind of step once.
type readiness struct {
	*Catalog
	lacks map[string]string // by kind; empty: nothing
}

func (s *Catalog) readiness() readiness { return readiness{s, map[string]string{}} }

// show marks an entry as not enabled if runs of the version cannot start now, with the reason.
func (r readiness) show(ctx context.Context, entry *workflowsv1.WorkflowCatalogEntry, version *ent.WorkflowVersion) error {
	plan := &storev1.WorkflowPlan{}
	if err := proto.Unmarshal(version.Plan, plan); err != nil {
		return fmt.Errorf("plan of workflow version %d: %w", version.ID, err)
	}
	var reasons []string
	if !entry.GetEnabled() {
		reasons = append(reasons, status.Convert(disabled(entry.GetName())).Message())
	}
	for _, step := range plan.GetSteps() {
		reason, err := r.of(ctx, step.GetUses())
		if err != nil {
			return err
		}
		if reason != "" && !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) > 0 {
		entry.Enabled, entry.DisabledReason = false, strings.Join(reasons, "; ")
	}
	return nil
}

// of returns what steps of a kind lack.
func (r readiness) of(ctx context.Context, kind string) (string, error) {
	reason, known := r.lacks[kind]
	if ready := r.kinds[kind].Ready; !known && ready != nil {
		err := ready(ctx, r.store.Reader)
		switch status.Code(err) {
		case codes.OK:
		case codes.FailedPrecondition:
			reason = status.Convert(err).Message()
		default:
			return "", err
		}
	}
	r.lacks[kind] = reason
	return reason, nil
}
