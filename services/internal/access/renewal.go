package access

import "context"

type renewalKey struct{}

// WithRenewal lets the handler of a stream check the caller's access again.
func WithRenewal(ctx context.Context, renew func() (context.Context, error)) context.Context {
	return context.WithValue(ctx, renewalKey{}, renew)
}

// Renew authenticates and authorizes the caller of a stream again. It returns the context of a stream that would start
// now, with the current teams of the caller, or the error that it would get. Outside a stream it returns ctx.
func Renew(ctx context.Context) (context.Context, error) {
	renew, ok := ctx.Value(renewalKey{}).(func() (context.Context, error))
	if !ok {
		return ctx, nil
	}
	return renew()
}
