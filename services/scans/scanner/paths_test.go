package scanner

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// readBoth reads the stored coverages of results and of a completion.
func readBoth(t *testing.T, results, completion string) (out [2]*storev1.ScannerCoverage) {
	t.Helper()
	var stored bytes.Buffer
	w, err := NewWriter(&stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadResults(t.Context(), strings.NewReader(results), Options{Limits: DefaultLimits()}, w.Write); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadCompletion(t.Context(), strings.NewReader(completion), DefaultLimits(), w.Write); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := Read(&stored, func(f *storev1.ScannerFrame) error { out[n] = f.GetCoverage(); n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPathsOfErrors(t *testing.T) {
	t.Parallel()
	const results = `{"findings":[],"searched_paths":["a.py","web/a.py","./lib/b.py"],"skipped_paths":["./slow.py"]}`
	for path, want := range map[string][]string{
		`a.py`: {"a.py"}, `./a.py`: {"a.py"}, `.\\a.py`: {"a.py"}, `web//a.py`: {"web/a.py"}, `web\\a.py`: {"web/a.py"},
		`/builds/acme/web/a.py`: {"web/a.py", "a.py"}, `C:\\src\\lib\\b.py`: {"lib/b.py"}, `x/slow.py`: {"slow.py"},
		`/builds/other.py`: nil, `other.py`: nil, `/builds/ba.py`: nil,
	} {
		got := readBoth(t, results, `{"exit_code":0,"stats":{"errors":[{"level":"warn","path":"`+path+`"}]}}`)
		if !slices.Equal(got[1].GetSkippedPaths(), want) || (got[1].GetFailure() != "") != (want == nil) {
			t.Errorf("%s: %v, want %v", path, got[1], want)
		}
		if searched := []string{"a.py", "web/a.py", "lib/b.py"}; !slices.Equal(got[0].GetSearchedPaths(), searched) {
			t.Errorf("searched: %v", got[0])
		}
	}
}

func TestPathsOfSkippedFiles(t *testing.T) {
	t.Parallel()
	for element, want := range map[string][]string{
		`"a.py"`: {"a.py"}, `"./a.py"`: {"a.py"}, `{"path":"./a.py"}`: {"a.py"}, `"lib\\a.py"`: {"lib/a.py", `lib\a.py`},
		`"/builds/web/a.py"`: {"/builds/web/a.py", "a.py", "builds/web/a.py", "web/a.py"}, `"/builds/b.py"`: {"/builds/b.py", "b.py"},
		`null`: nil,
	} {
		got := readBoth(t, `{"findings":[],"searched_paths":["b.py"],"skipped_paths":[`+element+`]}`, `{"stats":{"errors":["x"]}}`)[0]
		if !slices.Equal(got.GetSkippedPaths(), want) || got.GetFailure() != "" {
			t.Errorf("%s: %v, want %v", element, got, want)
		}
	}
	for _, element := range []string{`{"reason":"too big"}`, `7`, `""`} {
		if got := readBoth(t, `{"findings":[],"skipped_paths":[`+element+`]}`, `{"stats":{"errors":["x"]}}`)[0]; got.GetFailure() != failedSkipped {
			t.Errorf("%s: %v", element, got)
		}
	}
}
