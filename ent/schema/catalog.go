package schema

import (
	"context"
	"slices"

	"entgo.io/ent"

	"github.com/palisade/palisade/ent/catalog"
)

// inCatalog records changes of fields that lists of findings show from another table. New rows are not recorded: no
// list has shown them yet.
func inCatalog(shown ...string) ent.Hook {
	return func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			changes := func(name string) bool { return slices.Contains(shown, name) }
			switch {
			case m.Op().Is(ent.OpCreate):
			case m.Op().Is(ent.OpDelete | ent.OpDeleteOne), slices.ContainsFunc(m.Fields(), changes):
				catalog.Change(ctx)
			}
			return next.Mutate(ctx, m)
		})
	}
}
