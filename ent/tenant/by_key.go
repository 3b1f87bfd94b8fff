package tenant

import "context"

// byKeyKey is the context key of ByKey.
type byKeyKey struct{}

// ByKey marks changes of rows that the caller names by their primary keys: the deployment is checked on the rows that
// were found, and no index is looked for by it. A planner that knows nothing of a deployment takes it for a few rows,
// and would read all of them.
func ByKey(ctx context.Context) context.Context { return context.WithValue(ctx, byKeyKey{}, true) }

// IsByKey reports whether ctx was marked so.
func IsByKey(ctx context.Context) bool {
	marked, _ := ctx.Value(byKeyKey{}).(bool)
	return marked
}
