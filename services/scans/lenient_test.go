package scans_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

// warnings are all warnings of an answer.
func warnings(r *scansv1.UploadReportResponse) string {
	var all []string
	for _, run := range r.GetRuns() {
		all = append(all, run.GetWarnings()...)
	}
	return strings.Join(all, "\n")
}

// TestReportsThatAreUnderstoodInPart close nothing, and say so.
func TestReportsThatAreUnderstoodInPart(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		first := upload(t, s, "paths", testdata(t, "faults/paths-native.sarif"))
		second := upload(t, s, "paths", testdata(t, "faults/paths-outside.sarif"))
		if first.GetCreated() != 1 || second.GetFixed() != 0 || warnings(second) == "" {
			t.Errorf("a path outside the checkout: %v, warnings %s", counts(second), warnings(second))
		}

		first = upload(t, s, "fingerprints", testdata(t, "faults/fingerprints-text.sarif"))
		second = upload(t, s, "fingerprints", testdata(t, "faults/fingerprints-object.sarif"))
		wantCounts(t, "a fingerprint that is an object", second, [6]int32{0, 0, first.GetCreated(), 0, 0, 0})
		for _, want := range []string{
			"/runs/0/results/0/fingerprints/csvRowSha256 is an object, want a string: ignored",
			"no finding was closed as fixed: /runs/0/results/0/fingerprints/csvRowSha256 is an object",
		} {
			if !strings.Contains(warnings(second), want) {
				t.Errorf("no warning has %q:\n%s", want, warnings(second))
			}
		}

		first = upload(t, s, "rules", testdata(t, "faults/results-without-rule.sarif"))
		if first.GetCreated() != 2 || first.GetSkipped() != 0 || !strings.Contains(warnings(first), "2 results name no rule") {
			t.Errorf("results without a rule: %v, warnings %s", counts(first), warnings(first))
		}
	})
}

// TestExitCodesThatMeanFound: SpotBugs calls it a failure that it found something.
func TestExitCodesThatMeanFound(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		found := upload(t, s, "main", testdata(t, "faults/bugs-found.sarif"))
		fixed := upload(t, s, "main", testdata(t, "faults/bugs-fixed.sarif"))
		none := upload(t, s, "main", testdata(t, "faults/no-bugs.sarif"))
		if fixed.GetFixed() != 2 || none.GetFixed() != found.GetCreated()-2 || fixed.GetCreated() != 0 {
			t.Errorf("%v, then %v, then %v", counts(found), counts(fixed), counts(none))
		}
	})
}

// TestWhatMayClose: each report has one result of two open findings. Only a result that the tool reports as gone
// closes.
func TestWhatMayClose(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		one := func(rule, path, more string) string {
			return fmt.Sprintf(`{"ruleId":%q,"message":{"text":"about %s"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":3}}}]%s}`, rule, rule, path, more)
		}
		doc := func(more string, results ...string) []byte {
			return fmt.Appendf(nil, `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[%s]%s}]}`, strings.Join(results, ","), more)
		}
		keep, gone := one("a", "a.go", ""), one("b", "b.go", "")
		for i, c := range []struct {
			report []byte
			closes bool
		}{
			{doc("", keep), true},
			{doc("", keep, one("b", "b.go", `,"kind":"pass"`)), true},
			{doc("", keep, one("b", "b.go", `,"kind":"notApplicable"`)), true},
			{doc("", keep, one("b", "b.go", `,"level":"none"`)), true},
			{doc("", keep, one("b", "b.go", `,"baselineState":"absent"`)), true},
			{doc("", keep, `7`), false},
			{doc("", keep, `null`), false},
			{doc("", keep, `{"message":{"text":"something else"}}`), false},
			{doc("", keep, `{"ruleId":"b","message":{"text":"something else"}}`), false},
			{doc("", strings.Replace(keep, `"startLine":3`, "", 1)), false},
			{doc("", strings.Replace(keep, `"startLine":3`, `"charOffset":9`, 1)), true},
			{doc("", one("a", "a.go", `,"rule":7`)), false},
			{doc(`,"invocations":7`, keep), false},
			{doc(`,"automationDetails":{"id":{}}`, keep), false},
			{doc(`,"externalPropertyFileReferences":{"results":[{"location":{"uri":"x"}}]}`, keep), false},
			{[]byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t","rules":[7]}},"results":[` + keep + `]}]}`), false},
			{[]byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":7}]}`), false},
			{[]byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":{"x":` + keep + `}}]}`), false},
			// A run of the same tool with a category that cannot be read may mean this category.
			{[]byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"automationDetails":{"id":{}},"results":7},
				{"tool":{"driver":{"name":"t"}},"results":[` + keep + `]}]}`), false},
		} {
			ref := "case" + strconv.Itoa(i)
			upload(t, s, ref, doc("", keep, gone))
			answer := upload(t, s, ref, c.report)
			if closed := answer.GetFixed() + answer.GetRemoved(); closed != map[bool]int32{true: 1}[c.closes] {
				t.Errorf("%s closes %d, want %v", c.report, closed, c.closes)
			}
			quiet := strings.Contains(string(c.report), `{"ruleId":"b","message":{"text":"something else"}}`) // usual for tools without files
			if all := warnings(answer); !c.closes && !quiet && !strings.Contains(all, "closed") {
				t.Errorf("%s: no warning says that no finding was closed: %s", c.report, all)
			}
		}
	})
}

// TestEncodings: UTF-16 and UTF-32 are converted, also compressed and enveloped.
func TestEncodings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		plain := sarifOf(t, run{Tool: "t", Results: []result{{Rule: "r", File: "src/文件 😀.c", Code: "x = 1", Line: 1}}})
		upload(t, s, "main", plain)
		encode := func(e encoding.Encoding) []byte {
			raw, err := e.NewEncoder().Bytes(plain)
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		if _, err := w.Write(encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for name, report := range map[string][]byte{
			"UTF-8 with a mark":     append([]byte("\xEF\xBB\xBF"), plain...),
			"UTF-16LE":              encode(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)),
			"UTF-16LE with a mark":  encode(unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)),
			"UTF-16BE":              encode(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)),
			"UTF-16BE with a mark":  encode(unicode.UTF16(unicode.BigEndian, unicode.UseBOM)),
			"UTF-32LE":              encode(utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)),
			"UTF-32BE with a mark":  encode(utf32.UTF32(utf32.BigEndian, utf32.UseBOM)),
			"compressed":            zipped.Bytes(),
			"enveloped, compressed": []byte(`{"sarif":"` + base64.StdEncoding.EncodeToString(zipped.Bytes()) + `"}`),
		} {
			wantCounts(t, name, upload(t, s, "main", report), [6]int32{0, 0, 1, 0, 0, 0})
		}
		for _, file := range []string{"utf16le-bom", "utf16le"} {
			if r := upload(t, s, file, testdata(t, "faults/"+file+".sarif")); r.GetCreated() == 0 || r.GetSkipped() != 0 {
				t.Errorf("%s: %v", file, counts(r))
			}
		}
		path := fmt.Sprintf("/api/v1/deployments/%s/reports?project=acme/web&ref=main", s.Slug)
		for want, report := range map[string][]byte{
			"is not UTF-8 at byte 119": testdata(t, "faults/gbk.sarif"),
			"iconv -f GBK -t UTF-8":    []byte("{\"version\":\"2.1.0\",\"x\":\"caf\xe9\"}"),
			"is not UTF-8 at byte 20":  []byte("{\"version\":\"2.1.0\",\"\xe4\xb8"),
			"NUL byte at byte 20":      []byte("{\"version\":\"2.1.0\",\"\x00\":1}"),
			"ZIP archive":              []byte("PK\x03\x04\x14\x00\x00\x00"),
		} {
			answer := s.Send(t, s.Token, http.MethodPost, path, bytes.NewReader(report))
			if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, want) {
				t.Errorf("%q: %d %s, want %q", report[:min(len(report), 40)], answer.Status, answer.Body, want)
			}
		}
	})
}

// TestOneBrokenFieldClosesNothing breaks an optional field of a result after an upload of the whole report.
func TestOneBrokenFieldClosesNothing(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	files := []string{"faults/paths-native.sarif", "faults/fingerprints-text.sarif", "faults/results-without-rule.sarif", "faults/bugs-found.sarif"}
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		raw := testdata(t, rapid.SampledFrom(files).Draw(r, "file"))
		var document any
		if err := json.Unmarshal(raw, &document); err != nil {
			r.Fatal(err)
		}
		var members []func(any)
		names := resultMembers(document.(map[string]any)["runs"].([]any)[0].(map[string]any)["results"], "", &members)
		i := rapid.IntRange(0, len(names)-1).Draw(r, "field")
		value := rapid.SampledFrom([]any{7.0, true, []any{}, map[string]any{}, map[string]any{"a": 1.0}}).Draw(r, "value")
		members[i](value)
		broken, err := json.Marshal(document)
		if err != nil {
			r.Fatal(err)
		}
		if n++; n > 25 {
			return // each draw stores two reports
		}
		ref := "draw" + strconv.Itoa(n)
		first, second := upload(t, s, ref, raw), upload(t, s, ref, broken)
		if second.GetFixed()+second.GetRemoved() != 0 || second.GetSkipped() != first.GetSkipped() {
			r.Fatalf("%s is %v: %v, want no finding closed and no result skipped; warnings %s", names[i], value, counts(second), warnings(second))
		}
	})
}

// resultMembers lists the members of all objects in v, with a function that replaces each.
func resultMembers(v any, path string, set *[]func(any)) (names []string) {
	switch v := v.(type) {
	case map[string]any:
		var keys []string
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			names, *set = append(names, path+"/"+key), append(*set, func(value any) { v[key] = value })
			names = append(names, resultMembers(v[key], path+"/"+key, set)...)
		}
	case []any:
		for i, element := range v {
			names = append(names, resultMembers(element, path+"/"+strconv.Itoa(i), set)...)
		}
	}
	return names
}
