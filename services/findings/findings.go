package findings

import (
	"context"
	"log/slog"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/list"
	"github.com/palisade/palisade/services/internal/store"
)

// Findings is the service group "findings".
type Findings struct {
	findingsv1.UnimplementedFindingsServiceServer
	list *list.Lister
}

// NewFindings serves findings from the store.
func NewFindings(st *store.Store, log *slog.Logger) *Findings {
	return &Findings{list: list.New(st, log)}
}

// ListFindings is operation 11 of the contract.
func (s *Findings) ListFindings(
	ctx context.Context, r *findingsv1.ListFindingsRequest,
) (*findingsv1.ListFindingsResponse, error) {
	return s.list.Page(ctx, r)
}
