package quota

import "context"

type usedUpKey struct{}

// WithUsedUp marks a request from an address that has used up its limit, for handlers that decide whether this limit
// applies to their caller.
func WithUsedUp(ctx context.Context) context.Context {
	return context.WithValue(ctx, usedUpKey{}, true)
}

// UsedUp reports whether the limit of the caller's address is used up.
func UsedUp(ctx context.Context) bool {
	usedUp, _ := ctx.Value(usedUpKey{}).(bool)
	return usedUp
}
