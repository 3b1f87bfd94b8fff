package chain

import (
	"context"

	"google.golang.org/grpc/metadata"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/inprocess"
)

// authenticate identifies the caller. Public RPCs do not verify credentials, so that a probe with an outdated
// credential does not fail.
func authenticate(d Deps) Link {
	return check(func(ctx context.Context, c *call) (context.Context, error) {
		if c.rule == nil {
			// The rules cover every registered RPC. An RPC without a rule must not run.
			return nil, apierr.NotImplemented("there is no operation %s", c.method)
		}
		header, err := authorization(ctx)
		if err != nil {
			return nil, err
		}
		if c.rule.GetPermission() == optionsv1.Permission_PERMISSION_PUBLIC {
			return ctx, nil
		}
		// A stream of events goes on by itself, so it does not show that somebody uses the console.
		c.principal, err = identify(ctx, d.Authenticator, header, c.rule.GetEventsPath() == "")
		if err != nil {
			return nil, err
		}
		return access.NewContext(ctx, c.principal), nil
	}).link("authentication")
}

// identify returns the caller of a header or, for calls of the HTTP port without one, of a session.
func identify(ctx context.Context, a *access.Authenticator, header string, use bool) (*access.Principal, error) {
	if session := access.SessionFrom(inprocess.Caller(ctx)); header == "" && session != "" {
		return a.AuthenticateSession(ctx, session, use)
	}
	return a.Authenticate(ctx, header)
}

// authorization returns the header, or "".
func authorization(ctx context.Context) (string, error) {
	switch values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) {
	case 0:
		return "", nil
	case 1:
		return values[0], nil
	default:
		// A proxy in front may have checked another of these headers than this server would.
		return "", apierr.Unauthenticated("the request has %d Authorization headers, want one", len(values))
	}
}
