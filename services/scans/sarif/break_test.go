package sarif_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/scans/sarif"
)

// field is a member of an object in a document.
type field struct {
	object map[string]any
	name   string
	path   string
}

// fields lists the members that a report can do without, in a stable order.
func fields(v any, path string) (list []field) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := path + "/" + name
			switch {
			case strings.HasSuffix(at, "/results"), strings.HasSuffix(at, "/runs"), at == "/version", strings.HasSuffix(at, "/tool"),
				strings.HasSuffix(at, "/tool/driver"), strings.HasSuffix(at, "/driver/name"): // required, or the results themselves
			default:
				list = append(list, field{v, name, at})
			}
			list = append(list, fields(v[name], at)...)
		}
	case []any:
		for i, element := range v {
			list = append(list, fields(element, path+"/"+strconv.Itoa(i))...)
		}
	}
	return list
}

// TestOneBrokenFieldLosesNothing: whatever optional field of a real report has a wrong type, is null or missing, all
// results are kept, and no finding is closed that one of them may be.
func TestOneBrokenFieldLosesNothing(t *testing.T) {
	var files []string
	for _, pattern := range []string{"testdata/*.sarif", "../testdata/faults/*.sarif"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	documents, before := map[string][]byte{}, map[string]outcome{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(raw) || strings.Contains(file, "gbk") {
			continue // another encoding, which is converted before
		}
		documents[file], before[file] = raw, readBytes(t, raw)
	}
	names := slices.Sorted(maps.Keys(documents))
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(names).Draw(t, "file")
		var document any
		if err := json.Unmarshal(documents[file], &document); err != nil {
			t.Fatal(err)
		}
		broken := rapid.SampledFrom(fields(document, "")).Draw(t, "field")
		_, ofSameType := broken.object[broken.name].(string)
		removed := rapid.SampledFrom([]string{"", "", "null", "delete"}).Draw(t, "how")
		switch removed {
		case "delete":
			delete(broken.object, broken.name)
		case "null":
			broken.object[broken.name] = nil
		default:
			value := rapid.SampledFrom([]any{7.0, true, "x", []any{}, []any{"x"}, map[string]any{}, map[string]any{"a": 1.0}}).Draw(t, "value")
			ofSameType = ofSameType && value == any("x")
			broken.object[broken.name] = value
		}
		raw, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		want, got := before[file], readBytes(t, raw)
		if len(got.results) != len(want.results) {
			t.Fatalf("%s %s: %d results, want %d; skips %+v", file, broken.path, len(got.results), len(want.results), got.skips)
		}
		for i, r := range got.results {
			one, old := got.report.Runs[r.Run], want.results[i]
			same := r.RuleID == old.RuleID && r.Path == old.Path
			missing := removed != "" || ofSameType || strings.HasSuffix(broken.path, "iBaseId") // no trace of it in the report
			if !same && one.Partial() == "" && one.Succeeded && !r.Unnamed && r.Path != "" && !missing {
				t.Fatalf("%s %s: result %d is %s in %s, was %s in %s, and findings may be closed", file, broken.path, i, r.RuleID, r.Path, old.RuleID, old.Path)
			}
		}
	})
}

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

func readBytes(t tester, raw []byte) (o outcome) {
	t.Helper()
	report, err := sarif.Open(context.Background(), bytes.NewReader(raw), sarif.Limits{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	o.report = report
	err = report.Results(context.Background(),
		func(r *sarif.Result) error { o.results = append(o.results, r); return nil },
		func(s sarif.Skip) error { o.skips = append(o.skips, s); return nil })
	if err != nil {
		t.Fatalf("results: %v", err)
	}
	return o
}
