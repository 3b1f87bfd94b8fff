package sarif_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/scans/places"
	"github.com/palisade/palisade/services/scans/sarif"
)

// at is a location with a file and a line.
func at(file string, line int) string {
	return fmt.Sprintf(`{"physicalLocation":{"artifactLocation":{"uri":"%s"},"region":{"startLine":%d,"snippet":{"text":"line %d"}}}}`, file, line, line)
}

// severalAt is a result of a tool at several locations.
func severalAt(tool string, locations ...string) string {
	return driver(tool, `{"ruleId":"r","message":{"text":"m"},"fingerprints":{"x/v1":"one"},"partialFingerprints":{"primaryLocationLineHash":"two"},
		"locations":[`+strings.Join(locations, ",")+`]}`)
}

func TestPlacesOfOneResult(t *testing.T) {
	o := read(t, severalAt("PMD", at("a.go", 1), at("b.go", 2), at("b.go", 2), `{}`, at("a.go", 3))).results
	var got []string
	for _, r := range o {
		got = append(got, fmt.Sprint(r.Path, ":", r.Line, " ", r.Snippet, r.ToolFingerprint, len(r.Related)))
	}
	if want := []string{"a.go:1 line 10", "b.go:2 line 20", "a.go:3 line 30"}; !slices.Equal(got, want) {
		t.Errorf("places %q, want %q", got, want)
	}
	for _, lost := range []string{`{}`, `{"physicalLocation":{}}`, `{"physicalLocation":{"artifactLocation":{}}}`, `{"physicalLocation":{"artifactLocation":{"index":7}}}`,
		`{"logicalLocations":[{"fullyQualifiedName":"f"}]}`} {
		if run := read(t, severalAt("PMD", at("a.go", 1), lost)).report.Runs[0]; run.Succeeded {
			t.Errorf("%s: the place is not counted as lost", lost)
		}
	}
	if run := read(t, severalAt("PMD", at("a.go", 1), at("a.go", 1))).report.Runs[0]; !run.Succeeded {
		t.Errorf("the same place twice: %q", run.Warnings)
	}
	if one := read(t, severalAt("pmd", at("a.go", 1))).results; len(one) != 1 || one[0].ToolFingerprint == "" {
		t.Errorf("one place: %+v", one)
	}
	many := make([]string, 2500)
	for i := range many {
		many[i] = at("a.go", i+1)
	}
	if all := read(t, severalAt("mobsfscan", many...)).results; len(all) != len(many) || all[2499].Line != 2500 {
		t.Errorf("%d of %d places", len(all), len(many))
	}
}

func TestRelatedPlaces(t *testing.T) {
	step := `{"message":{"text":"assigned here"},"physicalLocation":{"artifactLocation":{"uri":"b.c"},"region":{"startLine":4,"startColumn":2}},"logicalLocations":[{"name":"f"}]}`
	r := only(t, read(t, severalAt("cppcheck", `{}`, at("a.c", 1), at("a.c", 1), step)))
	want := sarif.RelatedLocation{Path: "b.c", Line: 4, Column: 2, EndLine: 4, EndColumn: 2, Message: "assigned here", Logical: "f"}
	if r.Path != "a.c" || len(r.Related) != 1 || r.Related[0] != want || r.ToolFingerprint != "x/v1:one" {
		t.Errorf("%+v", r)
	}
	many := slices.Repeat([]string{step}, 500)
	if r := only(t, read(t, severalAt("cppcheck", many...))); len(r.Related) > 100 {
		t.Errorf("%d related locations", len(r.Related))
	}
}

func TestLogicalNames(t *testing.T) {
	const table = `,"logicalLocations":[{"name":"acme","kind":"namespace"},{"name":"Web","parentIndex":0},{"name":"get","parentIndex":1},
		{"fullyQualifiedName":"acme::Api"},{"name":"put","parentIndex":3},{"name":"loop","parentIndex":5},7,{"decoratedName":"?f@@"}]`
	for list, want := range map[string]string{
		`[{"fullyQualifiedName":"Deployment/web","name":"web"}]`:   "Deployment/web",
		`[{"name":"web"},{"fullyQualifiedName":"Deployment/web"}]`: "Deployment/web",
		`[{"name":"web"},{"name":"db"}]`:                           "web",
		`[{"decoratedName":"?f@@","name":"f"}]`:                    "?f@@",
		`[{"index":2}]`:                                            "acme.Web.get",
		`[{"index":4}]`:                                            "acme::Api.put",
		`[{"name":"inner","parentIndex":1}]`:                       "acme.Web.inner",
		`[{"index":7}]`:                                            "?f@@",
		`[{"index":6}]`:                                            "",
		`[{"index":99},{"index":-1},{}]`:                           "",
		`[{"name":" \n "}]`:                                        "",
		`null`:                                                     "",
	} {
		r := only(t, read(t, run(`"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"logicalLocations":`+list+`}]}]`+table)))
		if r.Logical != want {
			t.Errorf("%s is %q, want %q", list, r.Logical, want)
		}
	}
	// A cycle ends, and a secret is not shown.
	only(t, read(t, run(`"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},"locations":[{"logicalLocations":[{"index":5}]}]}]`+table)))
}

func TestRootsOfTheReport(t *testing.T) {
	const numbered = `"originalUriBaseIds":{"SRCROOT0":{"uri":"file:///w/web/lib/"},"SRCROOT1":{"uri":"file:///w/web/"},"%SRCROOT2%":{"uri":"file:///other/"}}`
	const mapped = `"versionControlProvenance":[{"repositoryUri":"https://git.acme.test/a","mappedTo":{"uri":"file:///w/web/vendor/a/"}},
		{"mappedTo":{"uri":"web/","uriBaseId":"TOP"}}],"originalUriBaseIds":{"TOP":{"uri":"file:///w/"},"SRCROOT":{"uri":"file:///w/web/lib/"}}`
	const server = `"originalUriBaseIds":{"SRCROOT":{"uri":"file://host/share/"}}`
	for _, c := range []struct{ location, members, want string }{
		{`{"uri":"x.go","uriBaseId":"SRCROOT0"}`, numbered, "lib/x.go"},
		{`{"uri":"x.go","uriBaseId":"%SRCROOT2%"}`, numbered, "x.go"},
		{`{"uri":"file:///w/web/lib/x.go"}`, numbered + `,"invocations":[{"workingDirectory":{"uri":"file:///w/web/lib"}}]`, "lib/x.go"},
		{`{"uri":"x.go","uriBaseId":"SRCROOT"}`, mapped, "lib/x.go"},
		{`{"uri":"file:///w/web/vendor/a/x.go"}`, mapped, "vendor/a/x.go"},
		{`{"uri":"x.go","uriBaseId":"SRCROOT"}`, server, "x.go"},
		{`{"uri":"file://host/share/x.go"}`, server, "x.go"},
		{`{"uri":"file://src/x.go"}`, server, "src/x.go"},
		{`{"uri":"jar:file:/w/web/a.jar!/B.class"}`, numbered, "a.jar!/B.class"},
		{`{"uri":"src/a.go","uriBaseId":"TOP"}`, `"originalUriBaseIds":{"TOP":{"uri":"file:///"}}`, "src/a.go"},
	} {
		if r := only(t, read(t, located(c.location, c.members))); r.Path != c.want {
			t.Errorf("%s: path is %q, want %q", c.location, r.Path, c.want)
		}
	}
}

// A table of files and results have the same paths, whatever root was guessed.
func TestGuessCoversTheTableOfFiles(t *testing.T) {
	doc := run(`"tool":{"driver":{"name":"t"}},"results":[],"artifacts":[{"location":{"uri":"file:///builds/acme/web/a.go"}},{"location":{"uri":"/builds/acme/web/b.go"}}]`)
	report, err := open(doc, sarif.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	files, complete := report.Runs[0].Artifacts()
	if want := []sarif.Artifact{{Path: "a.go", Plain: true}, {Path: "b.go", Plain: true}}; !slices.Equal(files, want) || !complete {
		t.Errorf("files %v", files)
	}
	if w := report.Runs[0].Warnings; len(w) != 1 || !strings.Contains(w[0], "/builds/acme/web is taken for its directory") {
		t.Errorf("warnings %q", w)
	}
}

// No path is a reason to lose a result.
func TestNoResultIsLostByItsPath(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`(file:|//|/|\\\\|C:|\.\./|%2e|jar:|!/|a|\?){0,12}`))
		uri := text.Draw(rt, "uri")
		given := places.Given{CheckoutRoot: "/a", PathPrefix: rapid.SampledFrom([]string{"", "p/q"}).Draw(rt, "prefix")}
		doc := severalAt(rapid.SampledFrom([]string{"pmd", "t"}).Draw(rt, "tool"), fmt.Sprintf(
			`{"physicalLocation":{"artifactLocation":{"uri":%s,"uriBaseId":"B"}}}`, quoted(uri)))
		doc = strings.Replace(doc, `"results":`, `"originalUriBaseIds":{"B":{"uri":`+quoted(text.Draw(rt, "base"))+`}},"results":`, 1)
		o := read(t, doc, sarif.WithPlaces(given))
		if len(o.results) != 1 {
			rt.Fatalf("%q: %d results, skipped %v", uri, len(o.results), o.skips)
		}
	})
}

func quoted(text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(raw)
}
