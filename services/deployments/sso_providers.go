package deployments

import (
	"context"
	"net/url"
	"strings"

	"entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent/membership"
	"github.com/palisade/palisade/ent/user"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// providerID is the id of the server's only provider.
const providerID = 1

// SSOProviders is the service group "deployment SSO providers".
type SSOProviders struct {
	deploymentsv1.UnimplementedDeploymentSsoProvidersServiceServer
	store            *store.Store
	issuer, audience string
}

// NewSSOProviders serves the server's OpenID Connect issuer and the audience of its tokens. An empty issuer means none.
func NewSSOProviders(st *store.Store, issuer, audience string) *SSOProviders {
	return &SSOProviders{store: st, issuer: issuer, audience: audience}
}

// ListDeploymentSsoProviders lists the issuer with the number of members who sign in through it.
func (s *SSOProviders) ListDeploymentSsoProviders(ctx context.Context, r *deploymentsv1.ListDeploymentSsoProvidersRequest) (*deploymentsv1.ListDeploymentSsoProvidersResponse, error) {
	response := &deploymentsv1.ListDeploymentSsoProvidersResponse{}
	if s.issuer == "" {
		return response, nil
	}
	count, err := s.store.Reader.Membership.Query().Where(func(m *sql.Selector) {
		u := sql.Table(user.Table)
		m.Where(sql.In(m.C(membership.FieldUserID), sql.Select(u.C(user.FieldID)).From(u).Where(sql.EQ(u.C(user.FieldIssuer), s.issuer))))
	}).Count(ctx)
	if err != nil {
		return nil, err
	}
	host := s.issuer
	if parsed, err := url.Parse(s.issuer); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	response.Providers = []*deploymentsv1.DeploymentSsoProvider{{
		Id: providerID, DeploymentId: r.GetDeploymentId(), Enabled: true, SourceId: providerID, UserCount: int64(count),
		Provider: &deploymentsv1.SsoProvider{
			Id: providerID, Name: host, DisplayName: host, Type: deploymentsv1.SsoType_SSO_TYPE_OPENID, BaseUrl: s.issuer,
			OpenidData: &deploymentsv1.OpenIdProviderData{
				ClientId: s.audience, WellKnownUrl: strings.TrimSuffix(s.issuer, "/") + "/.well-known/openid-configuration",
			},
		},
	}}
	return response, nil
}
