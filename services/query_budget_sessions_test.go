package services_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	identityv1 "github.com/palisade/palisade/gen/palisade/identity/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// signIns revokes one of an administrator's sessions.
func (f *flows) signIns(t *testing.T) {
	var last int64
	err := f.server.Store.Write(f.server.System(t), func(ctx context.Context, tx *ent.Tx) error {
		chief, err := tx.User.Query().Where(user.Email("chief@" + f.tenant.Slug + ".test")).OnlyID(ctx)
		if err != nil {
			return err
		}
		for n := range f.rows {
			row, err := tx.Session.Create().SetHash(fmt.Append(nil, f.tenant.Slug, " session ", n)).SetUserID(chief).SetMethod("oidc").
				SetAddress("127.0.0.1").SetAgent("Test").SetCreatedAt(store.Now()).SetLastUsedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			last = row.ID
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rpc := identityv1.SessionsService_RevokeSession_FullMethodName
	// The server keeps a caller for a moment. The rows above may have taken longer.
	f.server.Body(t, f.admin, http.MethodGet, "/api/v1/sessions", "", http.StatusOK)
	f.seen.Take("")
	f.server.Body(t, f.admin, http.MethodDelete, fmt.Sprintf("/api/v1/sessions/%d", last), "", http.StatusOK)
	f.costs = append(f.costs, cost{rpc, "", countOf(f.seen.Take(rpc))})
}
