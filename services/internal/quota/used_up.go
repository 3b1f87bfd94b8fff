package quota

import "context"

type usedUpKey struct{}

// WithUsedUp says that the limit of the caller's address is used up, to a handler that has yet to find out whether that
// limit holds for its caller.
func WithUsedUp(ctx context.Context) context.Context {
	return context.WithValue(ctx, usedUpKey{}, true)
}

// UsedUp reports whether the limit of the caller's address is used up.
func UsedUp(ctx context.Context) bool {
	usedUp, _ := ctx.Value(usedUpKey{}).(bool)
	return usedUp
}
