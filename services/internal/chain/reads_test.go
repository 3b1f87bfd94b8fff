package chain_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/chain"
)

// A deployment with very many slow reads does not block the reads of another. Its waiting reads run when its own calls
// end.
func TestReadsShareTheNode(t *testing.T) {
	const calls = 100
	for _, transport := range []string{"grpc", "http"} {
		t.Run(transport, func(t *testing.T) {
			u := newUploadTest(t, chain.UploadLimits{})
			begun, end := make(chan string, calls), make(chan struct{})
			u.handlers.get = func(ctx context.Context, r *projectsv1.GetProjectRequest) error {
				begun <- r.GetDeploymentSlug()
				if r.GetDeploymentSlug() == "acme" {
					select {
					case <-end:
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			}
			acme := u.fixture.token(access.RoleReadOnly, access.ScopeWebAPI)
			get := func(conn grpc.ClientConnInterface, token, slug string) error {
				ctx, cancel := context.WithTimeout(as(t.Context(), token), 2*time.Minute)
				defer cancel()
				_, err := projectsv1.NewProjectsServiceClient(conn).GetProject(ctx, &projectsv1.GetProjectRequest{DeploymentSlug: slug, ProjectName: "web"})
				return err
			}
			var group sync.WaitGroup
			errs := make(chan error, calls)
			for range calls {
				group.Go(func() { errs <- get(u.conns[transport], acme, "acme") })
			}
			<-begun // more may run now; all of them hold their slots
			must(t, get(u.conns[transport], u.tokens["globex"], "globex"))
			if running := len(begun); running > calls/2 {
				t.Errorf("%d calls of one deployment run at the same time", running)
			}
			close(end)
			group.Wait()
			close(errs)
			for err := range errs {
				must(t, err)
			}
		})
	}
}
