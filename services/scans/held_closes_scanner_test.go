package scans_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/services/internal/apitest"
)

// manyFound are the results of a scanner: n findings in n files. The scan searched the files below searched.
func manyFound(n, searched int) string {
	var findings, paths []string
	for i := range n {
		findings = append(findings, fmt.Sprintf(`{"check_id":"acme.rule","path":"src/f%d.py","line":%d,"column":1,"end_line":%d,"end_column":9,"message":"m","severity":1,
			"index":0,"commit_date":"2026-11-20T21:57:51","syntactic_id":"%032x","match_based_id":"%0128x_0","metadata":{},"is_blocking":false}`, i, i+1, i+1, i, i))
	}
	for i := range searched {
		paths = append(paths, fmt.Sprintf(`"src/f%d.py"`, i))
	}
	return fmt.Sprintf(`{"findings":[%s],"ignores":[],"searched_paths":[%s],"renamed_paths":[],"rule_ids":["acme.rule"]}`,
		strings.Join(findings, ","), strings.Join(paths, ","))
}

// Scans of the scanner protocol hold closes, too. Files that are gone are closed at once.
func TestHeldClosesOfAScanner(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		c.scan(t, manyFound(30, 30))
		c.scan(t, manyFound(18, 18))
		if got := statesOf(t, s); got["removed"] != 12 || got["unresolved"] != 18 {
			t.Errorf("12 files are gone: %v", got)
		}
		id, answer := c.scan(t, manyFound(0, 18))
		if got := statesOf(t, s); got["unresolved"] != 18 || answer["success"] != true {
			t.Errorf("no findings: %v, %v", got, answer)
		}
		hold := s.Store.Reader.HeldClose.Query().Where(heldclose.State("pending")).OnlyX(s.System(t))
		if hold.ScanID != id || hold.Findings != 18 || hold.Open != 18 || hold.ToolVersion != "1.97.0" {
			t.Errorf("hold %v", hold)
		}
		if stats := s.Store.Reader.Scan.GetX(s.System(t), id).Stats; fmt.Sprint(stats["held_closes"]) != "18" {
			t.Errorf("statistics %v", stats)
		}
		c.scan(t, manyFound(0, 18))
		if got := statesOf(t, s); got["unresolved"] != 0 || got["fixed"] != 18 {
			t.Errorf("none again: %v", got)
		}
		wantList(t, "holds", holds(t, s), "1 confirmed 18/18 0 scan")
	})
}
