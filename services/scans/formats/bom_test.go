package formats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/jsonstream"
)

var bomLimits = jsonstream.Limits{MaxBytes: 1 << 30, MaxDepth: 256, MaxValues: 20_000_000, MaxValueBytes: 16 << 20, MaxTokenBytes: 16 << 20}

// convertedFacts is a document as SARIF, and its facts.
func convertedFacts(t *testing.T, src io.ReadSeeker, name string) (results, facts string, notes []*Notes) {
	t.Helper()
	f, err := Detect(context.Background(), src, bomLimits, func() ([]Format, error) { return nil, nil })
	if err != nil || f.Name != name {
		t.Fatalf("detected as %q, want %q: %v", f.Name, name, err)
	}
	var out, side bytes.Buffer
	if notes, err = Convert(context.Background(), f, src, bomLimits, &out, &side); err != nil {
		t.Fatal(err)
	}
	return out.String(), side.String(), notes
}

// TestCycloneDXInXML: a document says the same in JSON and in XML. The XML is the JSON as the library of CycloneDX
// converts it.
func TestCycloneDXInXML(t *testing.T) {
	var results, facts [2]string
	for i, file := range []struct{ name, format string }{{"cyclonedx-bom.json", "cyclonedx-json"}, {"cyclonedx-bom-xml.xml", "cyclonedx-xml"}} {
		raw, err := os.ReadFile("../testdata/formats/" + file.name)
		if err != nil {
			t.Fatal(err)
		}
		var notes []*Notes
		results[i], facts[i], notes = convertedFacts(t, bytes.NewReader(raw), file.format)
		if len(notes) != 1 || len(notes[0].Warnings)+len(notes[0].Unreadable) > 0 || notes[0].FactsOnly {
			t.Errorf("%s: %+v", file.name, notes[0])
		}
	}
	if results[0] != results[1] || strings.Count(results[0], `"ruleId"`) != 4 {
		t.Errorf("JSON\n%s\nXML\n%s", results[0], results[1])
	}
	if facts[0] != facts[1] || strings.Count(facts[0], "\n") != 8 {
		t.Errorf("JSON\n%s\nXML\n%s", facts[0], facts[1])
	}
}

// TestSeverityOfRatings: the source of the vulnerability comes first, then the newest method. Scores of other methods
// have another scale.
func TestSeverityOfRatings(t *testing.T) {
	for _, c := range []struct {
		source, word, score string
		ratings             []cdxRating
	}{
		{word: "high", score: "7.5", ratings: []cdxRating{{Severity: "low", Score: "3", Method: "CVSSv2"}, {Severity: "high", Score: "7.5", Method: "CVSSv31"}}},
		{word: "critical", score: "9.8", ratings: []cdxRating{{Severity: "critical", Score: "9.8", Method: "CVSSv4"}, {Severity: "high", Score: "7.5", Method: "CVSSv31"}}},
		{source: "ghsa", word: "low", score: "", ratings: []cdxRating{{Severity: "high", Score: "7.5", Method: "CVSSv31"}, {Severity: "low", Source: cdxSource{Name: "GHSA"}}}},
		{word: "medium", ratings: []cdxRating{{Severity: "unknown", Method: "CVSSv31"}, {Severity: "medium", Score: "60", Method: "OWASP"}}},
		{score: "10.0", ratings: []cdxRating{{Score: "10.0", Method: "CVSSv3"}}},
		{ratings: []cdxRating{{Severity: "unknown"}, {Score: "3", Method: "SSVC"}}},
		{},
	} {
		v := &cdxVulnerability{Source: cdxSource{Name: c.source}, Ratings: c.ratings}
		if word, score := v.severity(); word != c.word || score != c.score {
			t.Errorf("%+v: %q %q, want %q %q", c.ratings, word, score, c.word, c.score)
		}
	}
}

// TestUnreadableVulnerability: what may be a vulnerability and cannot be read keeps findings open.
func TestUnreadableVulnerability(t *testing.T) {
	doc := `{"bomFormat":"CycloneDX","components":[],"vulnerabilities":["CVE-1",{"affects":[]},{"id":"CVE-2","ratings":[{"score":"9.8","method":"CVSSv31","vector":7}],"affects":[1,{"ref":"a"}]}]}`
	results, _, notes := convertedFacts(t, strings.NewReader(doc), "cyclonedx-json")
	if n := notes[0]; n.Failure == "" || len(n.Unreadable) != 3 || n.Unreadable[0].Pointer != "/vulnerabilities/0" || !strings.Contains(results, `"9.8"`) {
		t.Errorf("%+v\n%s", n, results)
	}
}

// unrolled is a virtual document: a head, a unit for each number, and a tail.
type unrolled struct {
	head, tail string
	unit       func(n int) string
	n, next    int
	rest       string
}

func (d *unrolled) Seek(int64, int) (int64, error) {
	d.next, d.rest = -1, ""
	return 0, nil
}

func (d *unrolled) Read(p []byte) (int, error) {
	for d.rest == "" {
		switch {
		case d.next < 0:
			d.rest = d.head
		case d.next < d.n:
			d.rest = d.unit(d.next)
		case d.next == d.n:
			d.rest = d.tail
		default:
			return 0, io.EOF
		}
		d.next++
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func component(n int) string {
	return fmt.Sprintf(`,{"type":"library","bom-ref":"pkg:npm/some-package-%d@1.2.3","name":"some-package-%d","version":"1.2.3","purl":"pkg:npm/some-package-%d@1.2.3",
		"licenses":[{"license":{"id":"MIT"}}],"hashes":[{"alg":"SHA-512","content":"%0128d"}]}`, n, n, n, n)
}

// grown is by how much a conversion lets the heap grow, in MiB.
func grown(convert func(out io.Writer)) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, highest := m.HeapInuse, m.HeapInuse
	convert(writerFunc(func(p []byte) (int, error) {
		runtime.ReadMemStats(&m)
		highest = max(highest, m.HeapInuse)
		return len(p), nil
	}))
	return (highest - before) >> 20
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestLargeBillsOfMaterials: a large document takes bounded memory. One with more packages than a project may have is
// refused, before it takes more.
func TestLargeBillsOfMaterials(t *testing.T) {
	testrun.Deep(t) // measures memory
	most := testrun.Size(20_000, maxDependencies)
	head := `{"bomFormat":"CycloneDX","metadata":{"component":{"name":"web","bom-ref":"web"}},"components":[{"type":"file","name":"x"}`
	for _, c := range []struct {
		n       int
		refused bool
	}{{most - 1, false}, {maxDependencies + 1, true}} {
		for _, unit := range []func(int) string{component, func(n int) string { return `,{"type":"file","bom-ref":"f` + fmt.Sprint(n) + `"}` }} {
			src := &unrolled{head: head, unit: unit, n: c.n, tail: `]}`}
			var err error
			mib := grown(func(facts io.Writer) {
				_, err = Convert(context.Background(), cycloneDX, src, bomLimits, io.Discard, facts)
			})
			var limit *jsonstream.LimitError
			files := !strings.Contains(unit(1), "library")
			if refused := errors.As(err, &limit); refused != (c.refused && !files) || err != nil && !refused {
				t.Errorf("%d components: %v", c.n, err)
			}
			if mib > 100 {
				t.Errorf("%d components take %d MiB", c.n, mib)
			}
		}
	}
}

// Small documents must not become large lists.
func TestCraftedDocumentsAreRefused(t *testing.T) {
	many := func(unit string) func(int) string { return func(int) string { return unit } }
	for name, c := range map[string]struct {
		format Format
		src    unrolled
	}{
		"dependsOn":  {cycloneDX, unrolled{head: `{"dependencies":[{"ref":"a","dependsOn":[""`, unit: many(`,"a"`), tail: `]}]}`}},
		"affects":    {cycloneDX, unrolled{head: `{"components":[],"vulnerabilities":[{"id":"a","affects":[{}`, unit: many(`,{}`), tail: `]}]}`}},
		"products":   {openVEX, unrolled{head: `{"statements":[{"vulnerability":"a","status":"fixed","products":[""`, unit: many(`,"a"`), tail: `]}]}`}},
		"statements": {openVEX, unrolled{head: `{"statements":[{}`, unit: many(`,{"vulnerability":"a","status":"fixed"}`), tail: `]}`}},
		"product_ids": {csaf, unrolled{
			head: `{"vulnerabilities":[{"cve":"a","product_status":{"fixed":[""`, unit: many(`,"aaaa"`), tail: `]}}]}`,
		}},
		"full_product_names": {csaf, unrolled{head: `{"product_tree":{"full_product_names":[{}`, unit: many(`,{"product_id":"a"}`), tail: `]}}`}},
		"described":          {spdx, unrolled{head: `{"documentDescribes":[""`, unit: func(n int) string { return fmt.Sprintf(`,"%d"`, n) }, tail: `]}`}},
		"relationships": {spdx, unrolled{
			head: `{"packages":[{"SPDXID":"a"},{"SPDXID":"b"}],"relationships":[{}`, tail: `]}`,
			unit: many(`,{"spdxElementId":"a","relationshipType":"DEPENDS_ON","relatedSpdxElement":"b"}`),
		}},
	} {
		c.src.n = 1_100_000
		var err error
		mib := grown(func(facts io.Writer) {
			_, err = Convert(context.Background(), c.format, &c.src, bomLimits, writerFunc(facts.Write), facts)
		})
		var limit *jsonstream.LimitError
		if !errors.As(err, &limit) {
			t.Errorf("%s: %v", name, err)
		}
		if mib > 120 {
			t.Errorf("%s takes %d MiB", name, mib)
		}
	}
}
