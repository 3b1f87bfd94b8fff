package projects_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// caller sends requests as the first administrator.
type caller struct{ *apitest.Server }

// mustDo requires 200 and returns the body.
func (c caller) mustDo(t *testing.T, method, path, body string) string {
	t.Helper()
	return c.Body(t, c.Token, method, path, body, 200)
}

// same requires that a gRPC call gives the same answer as HTTP.
func same(t *testing.T, body string) func(proto.Message, error) {
	return func(response proto.Message, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
	}
}

func seedProjects(t *testing.T, s caller, n int) {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), s.DeploymentID)
	err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		rows := make([]*ent.ProjectCreate, n)
		for i := range rows {
			name := fmt.Sprintf("team/%03d", i)
			rows[i] = tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now())
		}
		for part := range slices.Chunk(rows, store.RowsAtOnce) {
			if err := tx.Project.CreateBulk(part...).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
