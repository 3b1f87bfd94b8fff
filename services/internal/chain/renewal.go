package chain

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/internal/access"
)

// renewable lets the handler of a server-streaming call check the caller's access again (access.Renew): the credential
// may be revoked, and roles and teams may change while the stream lasts. outer is the context before the tenant link.
func (t tenants) renewable(ctx, outer context.Context, c *call, request proto.Message) context.Context {
	return access.WithRenewal(ctx, func() (context.Context, error) {
		header, err := authorization(outer)
		if err != nil {
			return nil, err
		}
		again := &call{id: c.id, method: c.method, transport: c.transport, remote: c.remote, rule: c.rule}
		if again.principal, err = identify(outer, t.authenticator, header, false); err != nil {
			return nil, err
		}
		renewed, err := t.enter(access.NewContext(outer, again.principal), again, request)
		if err != nil {
			return nil, err
		}
		if err := access.Authorize(again.rule, again.principal, again.grant); err != nil {
			return nil, err
		}
		return t.renewable(renewed, outer, again, request), nil
	})
}
