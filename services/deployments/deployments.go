// Package deployments serves deployments, the tenants of the server.
package deployments

import (
	"cmp"
	"context"
	"net/url"
	"slices"

	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
)

// Deployments is the service group "deployments".
type Deployments struct {
	deploymentsv1.UnimplementedDeploymentsServiceServer
	publicURL string
}

// NewDeployments serves deployments; publicURL is the server's public URL.
func NewDeployments(publicURL string) *Deployments { return &Deployments{publicURL: publicURL} }

// ListDeploymentsV1 lists the deployments of the credential with their slugs.
func (s *Deployments) ListDeploymentsV1(ctx context.Context, _ *deploymentsv1.ListDeploymentsV1Request) (*deploymentsv1.ListDeploymentsV1Response, error) {
	response := &deploymentsv1.ListDeploymentsV1Response{}
	for _, g := range grants(ctx) {
		response.Deployments = append(response.Deployments, &deploymentsv1.DeploymentV1{
			Id: g.DeploymentID, Name: g.Name, Slug: g.Slug,
			Findings: &deploymentsv1.EndpointReference{Url: s.publicURL + "/api/v1/deployments/" + url.PathEscape(g.Slug) + "/findings"},
		})
	}
	return response, nil
}

// ListDeployments lists the deployments of the credential.
func (s *Deployments) ListDeployments(ctx context.Context, _ *deploymentsv1.ListDeploymentsRequest) (*deploymentsv1.ListDeploymentsResponse, error) {
	response := &deploymentsv1.ListDeploymentsResponse{}
	for _, g := range grants(ctx) {
		response.Deployments = append(response.Deployments, &deploymentsv1.Deployment{Id: g.DeploymentID, Name: g.Name})
	}
	return response, nil
}

// grants returns the deployments that authentication found, without another query.
func grants(ctx context.Context) []access.Grant {
	principal, ok := access.FromContext(ctx)
	if !ok {
		return nil
	}
	return slices.SortedFunc(slices.Values(principal.Grants), func(a, b access.Grant) int { return cmp.Compare(a.DeploymentID, b.DeploymentID) })
}
