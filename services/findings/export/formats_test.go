package export_test

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// TestFormats compares the file of each format with its golden file.
func TestFormats(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		for _, c := range []struct {
			format string
			want   int
		}{{"CSV", 14}, {"NDJSON", 14}, {"SARIF", 13}, {"OPENVEX", 4}, {"CYCLONEDX", 4}} {
			e := export(t, s, s.Tenant, s.Token, `{"format":"EXPORT_FORMAT_`+c.format+`"}`)
			if e.rows != c.want {
				t.Errorf("%s: %d rows, want %d", c.format, e.rows, c.want)
			}
			apitest.Golden(t, strings.ToLower(c.format), stable(e.text))
		}
	})
}

// TestNoFormulas: no cell of a spreadsheet is a formula, and the text is still there.
func TestNoFormulas(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	seed(t, s)
	e := export(t, s, s.Tenant, s.Token, `{}`)
	rows, err := csv.NewReader(strings.NewReader(e.text)).ReadAll()
	if err != nil || len(rows) != e.rows+1 {
		t.Fatalf("%d rows of %d: %v", len(rows), e.rows, err)
	}
	found := 0
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				t.Errorf("a formula: %s", cell)
			}
			if strings.HasPrefix(cell, "'=") || strings.HasPrefix(cell, "'@") {
				found++
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d cells have texts that look like formulas", found)
	}
}
