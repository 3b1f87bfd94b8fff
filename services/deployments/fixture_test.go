package deployments_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/user"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// caller sends requests to the server.
type caller struct{ *apitest.Server }

// each runs a test on both databases.
func each(t *testing.T, test func(t *testing.T, s caller)) {
	t.Helper()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) { test(t, caller{s}) })
}

// of is a path of the first deployment.
func (c caller) of(suffix string) string {
	return fmt.Sprintf("/api/agent/deployments/%d%s", c.DeploymentID, suffix)
}

// want requires a status and returns the body, without the request id of errors.
func (c caller) want(t *testing.T, status int, token, method, path, body string) string {
	t.Helper()
	return c.Body(t, token, method, path, body, status)
}

// admin sends a request as the first administrator, by token, and requires 200.
func (c caller) admin(t *testing.T, method, path, body string) string {
	t.Helper()
	return c.want(t, http.StatusOK, c.Token, method, path, body)
}

// refuses requires a status and text in the error.
func (c caller) refuses(t *testing.T, status int, token, method, path, body, text string) {
	t.Helper()
	if got := c.want(t, status, token, method, path, body); !strings.Contains(got, text) {
		t.Errorf("%s %s %s: %s, want it to say %q", method, path, body, got, text)
	}
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

// code requires that a gRPC call ends with a code.
func code(t *testing.T, want codes.Code) func(proto.Message, error) {
	return func(_ proto.Message, err error) {
		t.Helper()
		if status.Code(err) != want {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// person creates a user, who is a member of the first deployment unless role is empty.
func (c caller) person(t *testing.T, email string, role access.Role) (id int64, jwt string) {
	t.Helper()
	jwt = c.AddUser(t, c.Tenant, email, role)
	return c.userID(t, email), jwt
}

func (c caller) userID(t *testing.T, email string) int64 {
	t.Helper()
	return c.Store.Reader.User.Query().Where(user.Email(email)).OnlyIDX(c.System(t))
}

// write writes to the first deployment.
func (c caller) write(t *testing.T, fn func(ctx context.Context, tx *ent.Tx) error) {
	t.Helper()
	if err := c.Store.Write(tenant.NewContext(t.Context(), c.DeploymentID), fn); err != nil {
		t.Fatal(err)
	}
}
