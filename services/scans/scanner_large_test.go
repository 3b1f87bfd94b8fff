package scans_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/palisade/palisade/services/internal/apitest"
)

// largeResults is a results body of about size bytes, written while it is read. It has findings of 200 rules with the
// metadata and traces that real ones have.
func largeResults(size int) (body io.Reader, findings int) {
	const each = 2000
	findings = max(size/each, 1)
	filler := strings.Repeat("the rule says at length what is wrong and what to do about it; ", 20)
	reader, writer := io.Pipe()
	go func() {
		_, err := io.WriteString(writer, `{"findings":[`)
		for i := 0; i < findings && err == nil; i++ {
			comma := ","
			if i == 0 {
				comma = ""
			}
			_, err = fmt.Fprintf(writer, `%s{"check_id":"acme.rule-%d","path":"src/dir%d/file%d.py","line":%d,"column":1,"end_line":%d,"end_column":9,"message":"found %d","severity":1,"index":0,
				"commit_date":"2026-11-20T21:57:51","syntactic_id":"%032x","match_based_id":"%0128x_0","metadata":{"confidence":"LOW","note":"%s","semgrep.dev":{"policy":{"slug":"rule-board-audit"}}},"is_blocking":false}`,
				comma, i%200, i%100, i%5000, i%900+1, i%900+1, i, i, i, filler)
		}
		if err == nil {
			_, err = io.WriteString(writer, `],"ignores":[],"token":null,"searched_paths":["src/a.py"],"renamed_paths":[],"rule_ids":["acme.rule-0"]}`)
		}
		writer.CloseWithError(err)
	}()
	return reader, findings
}

// TestScannerLargeResults sends 2 MB, or with PALISADE_TEST_RESULTS=100 (MB) the results of a large monorepo.
func TestScannerLargeResults(t *testing.T) {
	t.Parallel()
	size := 2
	if text := os.Getenv("PALISADE_TEST_RESULTS"); text != "" {
		if _, err := fmt.Sscan(text, &size); err != nil {
			t.Fatal(err)
		}
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		c := newScanner(s)
		id := c.create(t)
		body, findings := largeResults(size << 20)
		answer := s.Send(t, s.Token, http.MethodPost, resultsPath(id), body, "Content-Type", "application/json")
		if answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		c.complete(t, id, uuid.NewString())
		if n := s.Store.Reader.Finding.Query().CountX(s.System(t)); n != findings {
			t.Errorf("%d findings, want %d", n, findings)
		}
	})
}
