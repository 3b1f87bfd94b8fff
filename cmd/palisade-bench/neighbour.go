package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

const (
	// neighbourFindings is the size of the second deployment, unless the first is smaller.
	neighbourFindings = 100_000
	// neighbourDecisions is the number of findings that are triaged repeatedly.
	neighbourDecisions = 2000
	// administrator is the user that the first start of a server creates.
	administrator = "admin@localhost"
)

// neighbour is a second deployment on the same server, with its own findings: one tenant must not notice the load of
// another.
type neighbour struct {
	tenant
	findings int
	ids      []int64 // findings to triage
	decided  int
}

// settleNeighbour creates the second deployment and fills it like the first one. Deployments are created by users, not
// by tokens, so it gets a JWT and a token from the store, like an operator with palisade jwt and palisade token.
func (b *bench) settleNeighbour(ctx context.Context) (*neighbour, error) {
	cfg := config.Default()
	cfg.Data, cfg.Database = b.settings.Data, b.settings.Database
	person, err := services.MintJWT(ctx, cfg, administrator, time.Hour)
	if err != nil {
		return nil, err
	}
	n := &neighbour{findings: min(neighbourFindings, b.findings)}
	var id int64
	if id, n.deployment, err = createDeployment(ctx, b.server, person, "Neighbour"); err != nil {
		return nil, err
	}
	if _, n.token, err = services.CreateToken(ctx, cfg, services.CreateTokenRequest{
		Name: "bench", Scopes: []string{"web-api", "agent"}, Role: "admin", Deployment: n.deployment,
	}); err != nil {
		return nil, err
	}
	c := n.client(b.server, 1)
	defer c.close()
	b.progress("another deployment: fill %d findings", n.findings)
	if err := makeUploads(ctx, 0, n.findings/fillResults, fillResults, func(ctx context.Context, u fillUpload) error {
		return c.create(ctx, u.project, u.ref, u.category, u.report, fillResults)
	}); err != nil {
		return nil, err
	}
	n.ids, err = b.ids(ctx, fmt.Sprintf("SELECT id FROM findings WHERE deployment_id = %d AND issue_type = 'sast' AND status = 'open' AND ref = 'refs/heads/main' ORDER BY id LIMIT %d", id, neighbourDecisions))
	if err == nil && len(n.ids) == 0 {
		err = errors.New("another deployment has no finding to decide about")
	}
	return n, err
}

// createDeployment creates a deployment as a user.
func createDeployment(ctx context.Context, server *child, person, name string) (id int64, slug string, err error) {
	c := newClient(server.ready.HTTP, person, 1)
	defer c.close()
	var answer struct {
		Deployment struct {
			ID   json.Number `json:"id"`
			Slug string      `json:"slug"`
		} `json:"deployment"`
	}
	if err := c.call(ctx, http.MethodPost, "/api/agent/deployments", object{"deploymentName": name}, &answer); err != nil {
		return 0, "", fmt.Errorf("create a deployment: %w", err)
	}
	id, err = answer.Deployment.ID.Int64()
	return id, answer.Deployment.Slug, err
}

// decide triages one finding: the next one, and after all of them the first again, with another state.
func (n *neighbour) decide(ctx context.Context, c *client) error {
	states := []string{"reviewing", "fixing"}
	i, state := n.decided%len(n.ids), states[n.decided/len(n.ids)%len(states)]
	n.decided++
	changed, err := c.triage(ctx, n.ids[i:i+1], state)
	if err == nil && changed == 0 {
		err = fmt.Errorf("triage of finding %d: nothing was changed", n.ids[i])
	}
	return err
}
