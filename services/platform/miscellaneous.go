// Package platform serves the service groups without a domain of their own.
package platform

import (
	"context"
	"errors"
	"net/url"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/chain"
)

// Miscellaneous is the service group "miscellaneous".
type Miscellaneous struct {
	platformv1.UnimplementedMiscellaneousServiceServer
	state     func(ctx context.Context) (text string, ready bool)
	publicURL string
	nodes     *Infrastructure
}

// NewMiscellaneous serves the group. state says whether the server is ready.
func NewMiscellaneous(state func(ctx context.Context) (text string, ready bool), publicURL string, nodes *Infrastructure) *Miscellaneous {
	return &Miscellaneous{state: state, publicURL: publicURL, nodes: nodes}
}

// GetBootstrapManagedScanVpc returns the template of scanner nodes.
func (m *Miscellaneous) GetBootstrapManagedScanVpc(
	context.Context, *platformv1.GetBootstrapManagedScanVpcRequest,
) (*platformv1.GetBootstrapManagedScanVpcResponse, error) {
	of := m.nodes.node
	return &platformv1.GetBootstrapManagedScanVpcResponse{
		AwsTemplateFormatVersion: of.version, Description: of.description, Metadata: of.metadata,
		Parameters: of.parameters, Resources: of.resources, Outputs: of.outputs,
	}, nil
}

// Ping reports that the server is up.
func (*Miscellaneous) Ping(context.Context, *platformv1.PingRequest) (*platformv1.PingResponse, error) {
	return &platformv1.PingResponse{}, nil
}

// GetPing reports that the server is up.
func (*Miscellaneous) GetPing(context.Context, *platformv1.GetPingRequest) (*platformv1.GetPingResponse, error) {
	return &platformv1.GetPingResponse{Message: "pong"}, nil
}

// HealthCheck reports that the process answers.
func (*Miscellaneous) HealthCheck(context.Context, *platformv1.HealthCheckRequest) (*platformv1.HealthCheckResponse, error) {
	return &platformv1.HealthCheckResponse{Status: "ok", Healthy: true}, nil
}

// ReadinessCheck reports that the server is ready; UNAVAILABLE if it is not.
func (m *Miscellaneous) ReadinessCheck(ctx context.Context, _ *platformv1.ReadinessCheckRequest) (*platformv1.ReadinessCheckResponse, error) {
	text, ready := m.state(ctx)
	if !ready {
		return nil, apierr.Unavailable(errors.New(text), "%s", text)
	}
	return &platformv1.ReadinessCheckResponse{Status: text, Ready: true}, nil
}

// GetIp returns the caller's address.
func (*Miscellaneous) GetIp(ctx context.Context, _ *platformv1.GetIpRequest) (*platformv1.GetIpResponse, error) {
	return &platformv1.GetIpResponse{Ip: chain.Remote(ctx)}, nil
}

// GetTenant returns the host of the server's public URL.
func (m *Miscellaneous) GetTenant(context.Context, *platformv1.GetTenantRequest) (*platformv1.GetTenantResponse, error) {
	u, err := url.Parse(m.publicURL)
	if err != nil {
		return nil, err
	}
	return &platformv1.GetTenantResponse{Tenant: u.Hostname()}, nil
}
