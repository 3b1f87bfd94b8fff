package scans

import (
	"context"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/policies/pathignore"
	"github.com/palisade/palisade/services/projects/byname"
)

// ignoresOf reads the paths that policies ignore in a project, which the upload may create.
func (s *ReportUploads) ignoresOf(ctx context.Context, name string) (*pathignore.Matcher, error) {
	policy, err := pathignore.Read(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	of, err := s.store.Reader.Project.Query().Where(byname.Is(ctx, name)).Only(ctx)
	if ent.IsNotFound(err) {
		return policy.For(nil), nil
	}
	return policy.For(of), err
}

// productIgnoredFiles are pairs of a product and all its patterns. There are none if all products have the same
// patterns: those are in ignored_files, which older scanners know, too.
func productIgnoredFiles(products []string, ignores *pathignore.Matcher) (pairs []*structpb.ListValue, err error) {
	common := ignores.SkippedByAll(products)
	more := false
	for _, product := range products {
		patterns := ignores.Skipped(product)
		list := make([]any, len(patterns))
		for n, pattern := range patterns {
			more = more || !slices.Contains(common, pattern)
			list[n] = pattern
		}
		pair, err := structpb.NewList([]any{product, list})
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	if !more {
		return nil, nil
	}
	return pairs, nil
}
