package tenant

import "context"

// byKeyKey is the context key of ByKey.
type byKeyKey struct{}

// ByKey marks changes of rows that the caller names by their primary keys. The deployment is checked on the rows found
// by key, and not used to choose an index: a planner without statistics of a deployment expects few rows for it, and
// would read all of them.
func ByKey(ctx context.Context) context.Context { return context.WithValue(ctx, byKeyKey{}, true) }

// IsByKey reports whether ctx was marked so.
func IsByKey(ctx context.Context) bool {
	marked, _ := ctx.Value(byKeyKey{}).(bool)
	return marked
}
