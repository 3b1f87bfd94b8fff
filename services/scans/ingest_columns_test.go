package scans_test

import (
	"context"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// Scans fill in the column of the file path for findings from before it existed. This does not count as a change.
func TestFilePathColumn(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "lint", Results: []result{{Rule: "r1", File: "src/a.py", Line: 3, Code: "x = 1"}}})
		wantCounts(t, "first", upload(t, s, "main", report), [6]int32{1, 0, 0, 0, 0, 0})
		path := func() string {
			row := s.Store.Reader.Finding.Query().OnlyX(s.System(t))
			if row.FilePath == nil {
				return ""
			}
			return *row.FilePath
		}
		if got := path(); got != "src/a.py" {
			t.Fatalf("path %q", got)
		}
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.Update().ClearFilePath().Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		events := s.Store.Reader.FindingEvent.Query().CountX(s.System(t))
		wantCounts(t, "filled in", upload(t, s, "main", report), [6]int32{0, 0, 1, 0, 0, 0})
		if got, now := path(), s.Store.Reader.FindingEvent.Query().CountX(s.System(t)); got != "src/a.py" || now != events {
			t.Errorf("path %q and %d events, want src/a.py and %d", got, now, events)
		}
		wantCounts(t, "again", upload(t, s, "main", report), [6]int32{0, 0, 1, 0, 0, 0})
	})
}
