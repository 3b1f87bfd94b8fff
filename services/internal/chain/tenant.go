package chain

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// resolveTenant finds the deployment that the request names among the caller's deployments and limits the context to
// it. RPCs outside a deployment get none, so that their queries on a tenant's table are denied. Inside the deployment,
// users are limited to the projects of their teams.
func resolveTenant(d Deps, audit *auditor) Link {
	t := tenants{rules: d.Rules, store: d.Store, audit: audit, authenticator: d.Authenticator}
	return Link{Name: "tenant", Unary: t.unary, Stream: t.stream}
}

type tenants struct {
	rules *access.Rules
	store *store.Store
	audit *auditor
	// authenticator serves streams that renew their access.
	authenticator *access.Authenticator
}

// scoped reports whether an RPC acts in one deployment.
func scoped(rule *optionsv1.MethodRule) bool {
	return rule.GetPermission() > optionsv1.Permission_PERMISSION_AUTHENTICATED && rule.GetPermission() != optionsv1.Permission_PERMISSION_JOIN
}

// enter resolves the deployment of a request.
func (t tenants) enter(ctx context.Context, c *call, request proto.Message) (context.Context, error) {
	c.request = request
	grant, err := t.grant(ctx, c, request)
	if err != nil {
		if !errors.Is(err, c.unreadable) { // which denies no caller
			t.audit.denied(ctx, c, err)
		}
		return nil, err
	}
	c.grant = grant
	ctx = access.WithGrant(tenant.NewContext(ctx, grant.DeploymentID), grant)
	if ctx, err = t.limitToTeams(ctx, c); err != nil {
		return nil, err
	}
	return telemetry.WithAttrs(ctx, slog.String("deployment", grant.Slug)), nil
}

// grant finds the deployment that the request names. Requests of scanners may name none.
func (t tenants) grant(ctx context.Context, c *call, request proto.Message) (*access.Grant, error) {
	slug, id := t.rules.DeploymentField(c.method).Of(request)
	if slug == "" && id == 0 && c.unreadable != nil && t.rules.DeploymentField(c.method) != nil {
		return nil, c.unreadable // it may have named one
	}
	if slug == "" && id == 0 && c.rule.GetScanner() {
		return access.OnlyGrant(c.principal)
	}
	if slug == "" && id == 0 && c.principal != nil {
		if err := t.rules.DeploymentField(c.method).Missing(); err != nil {
			return nil, err
		}
	}
	grant, err := access.ResolveGrant(c.principal, slug, id, c.rule.GetUnderscoredSlug())
	if err != nil || slug == "" || slug == grant.Slug {
		return grant, err
	}
	taken, err := t.store.Reader.Deployment.Query().Where(deployment.Slug(slug)).Exist(tenant.System(ctx))
	if err != nil || taken { // the request means that deployment, of other people
		return nil, cmp.Or(err, access.NoDeployment())
	}
	return grant, nil
}

// limitToTeams applies once the deployment has teams (contract facts, 2.1 and section 4). Users who are not
// administrators then see only the projects of their teams, and triage only where they are more than read-only. Each
// call reads the teams again, so that a change holds from the next call on. limitUploads limits uploads, since they
// also create projects. Administrator-only operations need no limit, because the access rule refuses everybody else.
func (t tenants) limitToTeams(ctx context.Context, c *call) (context.Context, error) {
	least := access.TeamRead
	switch c.rule.GetPermission() {
	case optionsv1.Permission_PERMISSION_UPLOAD:
		return t.limitUploads(ctx, c)
	case optionsv1.Permission_PERMISSION_MANAGE:
		return ctx, nil
	case optionsv1.Permission_PERMISSION_TRIAGE:
		least = access.TeamTriage
	}
	if c.grant.Role == access.RoleAdmin || c.principal.WithoutTeams {
		return ctx, nil
	}
	teams, err := access.TeamsOf(ctx, t.store.Reader, c.grant.DeploymentID, c.principal.UserID)
	if err != nil || !teams.Enabled {
		return ctx, err
	}
	return tenant.WithTeams(ctx, teams.IDs(least)), nil
}

// limitUploads limits uploads to new projects and to the projects of the user's teams. It applies to users who are not
// administrators, and to tokens whose creator is not one, unless they belong to the deployment.
func (t tenants) limitUploads(ctx context.Context, c *call) (context.Context, error) {
	if c.grant.Role == access.RoleAdmin || c.principal.ByAdmin || c.principal.WithoutTeams {
		return ctx, nil
	}
	teams, err := access.TeamsOf(ctx, t.store.Reader, c.grant.DeploymentID, c.principal.UserID)
	if err != nil || !teams.Enabled {
		return ctx, err
	}
	return access.WithUploads(ctx, c.principal.UserID, teams), nil
}

func (t tenants) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	c := callFrom(ctx)
	if !scoped(c.rule) {
		return handler(ctx, req)
	}
	request, _ := req.(proto.Message) // always true for our requests; anything else names no deployment
	ctx, err := t.enter(ctx, c, request)
	if err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// stream reads the first message ahead: it names the deployment, and the inner links and the handler must run in that
// deployment from the start. The handler's first RecvMsg gets this message.
func (t tenants) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	c := callFrom(ss.Context())
	if !scoped(c.rule) {
		return handler(srv, ss)
	}
	first, err := newRequest(c.method)
	if err != nil {
		return err
	}
	if err := ss.RecvMsg(first); err != nil {
		if errors.Is(err, io.EOF) {
			return apierr.InvalidArgument("deployment_slug", "the stream ended before its first message, which names the deployment")
		}
		return err
	}
	ctx, err := t.enter(ss.Context(), c, first)
	if err != nil {
		return err
	}
	if info.IsServerStream {
		ctx = t.renewable(ctx, ss.Context(), c, first)
	}
	return handler(srv, &tenantStream{
		ServerStream: ss, ctx: ctx, first: first, field: t.rules.DeploymentField(c.method), grant: c.grant,
	})
}

// newRequest returns an empty request of the RPC.
func newRequest(method string) (proto.Message, error) {
	service, name, err := splitMethod(method)
	if err != nil {
		return nil, err
	}
	descriptor, err := protoregistry.GlobalFiles.FindDescriptorByName(service)
	if err != nil {
		return nil, err
	}
	sd, _ := descriptor.(protoreflect.ServiceDescriptor)
	if sd == nil || sd.Methods().ByName(name) == nil {
		return nil, errors.New("no RPC " + method)
	}
	message, err := protoregistry.GlobalTypes.FindMessageByName(sd.Methods().ByName(name).Input().FullName())
	if err != nil {
		return nil, err
	}
	return message.New().Interface(), nil
}

// splitMethod splits "/package.Service/Method".
func splitMethod(method string) (service protoreflect.FullName, name protoreflect.Name, err error) {
	full := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	if !full.IsValid() {
		return "", "", errors.New("no RPC has the name " + method)
	}
	return full.Parent(), full.Name(), nil
}

// tenantStream is a stream after its first message was read ahead. Its later messages may not name another deployment.
type tenantStream struct {
	grpc.ServerStream
	ctx   context.Context
	first proto.Message // nil once the handler has it
	field *access.DeploymentField
	grant *access.Grant
}

// Context carries the deployment.
func (s *tenantStream) Context() context.Context { return s.ctx }

// RecvMsg receives the next message.
func (s *tenantStream) RecvMsg(m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return apierr.Internal(errors.New("a stream without protobuf messages"))
	}
	if s.first != nil {
		proto.Reset(message)
		proto.Merge(message, s.first)
		s.first = nil
		return nil
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	slug, id := s.field.Of(message)
	if slug != "" && !s.grant.Named(slug, false) || id != 0 && id != s.grant.DeploymentID {
		return apierr.InvalidArgument("deployment_slug", "every message of the stream must name the deployment of the first, or none")
	}
	return nil
}
