package scans_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// The same report in another order changes nothing, and findings with equal code keep their ids.
func TestReportInAnotherOrder(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		var results []result
		for line := range 6 {
			results = append(results, result{Rule: "sqli", File: "a.go", Code: "db.Query(q)", Line: 10 * (line + 1)})
		}
		results = append(results, result{Rule: "xss", File: "b.go", Code: "write(x)", Line: 3}, result{Rule: "xss", File: "b.go", Line: 9})
		send := func() string { return s.Upload(t, "acme/web", "main", sarifOf(t, run{Tool: "t", Results: results})) }
		if got := send(); !strings.Contains(got, `"created":8`) {
			t.Fatal(got)
		}
		before := idsOfFindings(t, s)
		for range 5 {
			rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
			if got := send(); !strings.Contains(got, `"created":0,"updated":0,"unchanged":8`) {
				t.Errorf("%v: %s", results, got)
			}
			if after := idsOfFindings(t, s); !slices.Equal(after, before) {
				t.Errorf("%v: ids before %v, after %v", results, before, after)
			}
		}

		// What does change is written, and the ids of the others stay.
		slices.Reverse(results)
		for n := range results {
			results[n].Level = "error"
		}
		if got := send(); !strings.Contains(got, `"created":0,"updated":8,"unchanged":0`) {
			t.Errorf("another severity: %s", got)
		}
		if after := idsOfFindings(t, s); !slices.Equal(after, before) {
			t.Errorf("another severity: ids before %v, after %v", before, after)
		}
		slices.Reverse(results)
		if got := send(); !strings.Contains(got, `"created":0,"updated":0,"unchanged":8`) {
			t.Errorf("after another severity: %s", got)
		}
	})
}

// idsOfFindings are the id, place, syntactic and match-based id of each finding, sorted.
func idsOfFindings(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	var found struct {
		Findings []struct {
			ID           json.Number `json:"id"`
			SyntacticID  string      `json:"syntactic_id"`
			MatchBasedID string      `json:"match_based_id"`
			Location     struct {
				Path string      `json:"file_path"`
				Line json.Number `json:"line"`
			} `json:"location"`
		} `json:"findings"`
	}
	if err := json.Unmarshal([]byte(s.Get(t, "/api/v1/deployments/acme/findings")), &found); err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Findings {
		list = append(list, strings.Join([]string{f.ID.String(), f.Location.Path, f.Location.Line.String(), f.SyntacticID, f.MatchBasedID[:8] + f.MatchBasedID[len(f.MatchBasedID)-2:]}, " "))
	}
	slices.Sort(list)
	return list
}
