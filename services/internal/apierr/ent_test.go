package apierr_test

import (
	"errors"
	"testing"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apierr"
)

// TestEntErrors uses the generated types, since Map recognises them by name only.
func TestEntErrors(t *testing.T) {
	for want, err := range map[codes.Code]error{
		codes.NotFound: &ent.NotFoundError{},
		codes.Aborted:  &ent.ConstraintError{},
		codes.Internal: &ent.NotSingularError{},
	} {
		if got := status.Code(apierr.Map(errors.Join(err))); got != want {
			t.Errorf("%T became %s, want %s", err, got, want)
		}
	}
	if got := status.Code(apierr.Map(&sqlgraph.NotFoundError{})); got != codes.NotFound {
		t.Errorf("got %s", got)
	}
}
