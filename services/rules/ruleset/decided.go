package ruleset

import (
	"context"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/rules/document"
)

// Decidable returns the rules of a project's scans among names whose findings block by decision of the server, if it is
// told to (see Selection.Decided): those in mode block, except rules whose effect depends on the validity of a secret,
// which only the scanner knows when it decides.
func Decidable(ctx context.Context, reader *ent.Client, names map[string]bool, selection Selection) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	all, err := selection.load(ctx, reader)
	if err != nil {
		return nil, err
	}
	var decidable []string
	for _, r := range all {
		if r.decidable && names[r.name] {
			decidable = append(decidable, r.name)
		}
	}
	return decidable, nil
}

// withoutBlock returns the rules with the named ones in a form that lets no scanner block.
func withoutBlock(all []*rendered, names []string) ([]*rendered, error) {
	if len(names) == 0 {
		return all, nil
	}
	decided := make(map[string]bool, len(names))
	for _, name := range names {
		decided[name] = true
	}
	all = slices.Clone(all)
	for i, r := range all {
		if !decided[r.name] || !r.decidable {
			continue
		}
		changed := *r
		changed.annotation.Actions = nil
		var err error
		if changed.json, err = document.Annotate(r.json, changed.annotation); err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.name, err)
		}
		all[i] = &changed
	}
	return all, nil
}
