package exportfile

import (
	"slices"
	"testing"

	"github.com/palisade/palisade/ent"
)

// files are exports with ids from 1 on.
func files(n int, of owner, size int64, change func(*ent.Export)) (rows []*ent.Export) {
	done := int64(1)
	for range n {
		row := &ent.Export{ActorKind: of.kind, ActorID: of.id, ByteCount: size, CompletedAt: &done}
		if change != nil {
			change(row)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestSurplus: a caller's files make room for the caller's next one. Nobody keeps others from exporting.
func TestSurplus(t *testing.T) {
	t.Parallel()
	ann, bob := owner{"user", 1}, owner{"token", 1}
	unfinished := func(row *ent.Export) { row.CompletedAt = nil }
	failed := func(row *ent.Export) { row.CompletedAt, row.Error = nil, "no access" }
	const gib = 1 << 30
	for name, c := range map[string]struct {
		rows   []*ent.Export
		want   []int64
		denied bool
	}{
		"none":                        {},
		"room for one":                {rows: files(MaxFiles-1, ann, 1, nil)},
		"the oldest goes":             {rows: files(MaxFiles, ann, 1, nil), want: []int64{1}},
		"of others":                   {rows: files(5*MaxFiles, bob, 1, nil)},
		"others are busy":             {rows: files(5*MaxFiles, bob, 0, unfinished)},
		"running exports stay":        {rows: slices.Concat(files(3, ann, 0, unfinished), files(MaxFiles-3, ann, 1, nil)), want: []int64{4}},
		"all are running":             {rows: files(MaxFiles, ann, 0, unfinished), denied: true},
		"failed ones go":              {rows: files(MaxFiles, ann, 0, failed), want: []int64{1}},
		"too many bytes":              {rows: slices.Concat(files(1, ann, 8*gib, nil), files(4, bob, 7*gib, nil)), want: []int64{2}},
		"too many bytes that run":     {rows: files(5, bob, 8*gib, unfinished)},
		"own bytes are the most":      {rows: slices.Concat(files(2, bob, gib, nil), files(5, ann, 8*gib, nil)), want: []int64{3, 4}},
		"a former limit was exceeded": {rows: files(MaxFiles+2, ann, 1, nil), want: []int64{1, 2, 3}},
	} {
		for i, row := range c.rows {
			row.ID = int64(i) + 1
		}
		got, ok := surplus(c.rows, func(row *ent.Export) bool { return ownerOf(row) == ann }, MaxFiles)
		if ok == c.denied || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %t, want %v", name, got, ok, c.want)
		}
	}
}
