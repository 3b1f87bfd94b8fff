package formats_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// sampler discards what is written, and measures the memory now and then.
type sampler struct {
	bytes, next int64
	highest     uint64
}

func (s *sampler) Write(p []byte) (int, error) {
	if s.bytes += int64(len(p)); s.bytes >= s.next {
		s.sample()
		s.next = s.bytes + 4<<20
	}
	return len(p), nil
}

func (s *sampler) sample() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.highest = max(s.highest, m.HeapInuse)
}

// convertLarge converts a report and returns by how much the memory grew.
func convertLarge(t *testing.T, src *repeated) (grown uint64, err error) {
	t.Helper()
	ctx, limits := context.Background(), sarif.DefaultLimits().Stream()
	format, err := formats.Detect(ctx, src, limits, noMappings)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	s := &sampler{}
	s.sample()
	before := s.highest
	_, err = formats.Convert(ctx, format, &sampled{src, s, 0}, limits, s, io.Discard)
	return s.highest - before, err
}

// sampled measures the memory while a document is read, because some documents are read several times before anything
// is written.
type sampled struct {
	io.ReadSeeker
	sampler *sampler
	read    int64
}

func (r *sampled) Read(p []byte) (int, error) {
	n, err := r.ReadSeeker.Read(p)
	if r.read += int64(n); r.read > 4<<20 {
		r.read = 0
		r.sampler.sample()
	}
	return n, err
}

func TestListsOfProblemsTakeFlatMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("reads large reports")
	}
	size := int64(testrun.Size(16<<20, 500<<20))
	for name, src := range map[string]*repeated{
		"trivy": {
			head: `{"SchemaVersion":2,"ArtifactName":"a","Results":[{"Vulnerabilities":[`,
			unit: `{"VulnerabilityID":"CVE-2021-23337","PkgName":"lodash","InstalledVersion":"4.17.20","FixedVersion":"4.17.21","Severity":"HIGH",
				"Title":"lodash: command injection","Description":"Lodash versions prior to 4.17.21 are vulnerable.","CweIDs":["CWE-94"]},`,
			tail: `{"VulnerabilityID":"CVE-2020-8203","PkgName":"lodash"}],"Target":"package-lock.json"}]}`,
		},
		"semgrep": {
			head: `{"version":"1","errors":[],"paths":{"scanned":[]},"results":[`,
			unit: `{"check_id":"go.sql","path":"a/b.go","start":{"line":3,"col":1},"end":{"line":3,"col":9},"extra":{"message":"SQL","severity":"ERROR",
				"lines":"db.Query(a + b)","metadata":{"cwe":["CWE-89: SQL Injection"],"owasp":["A03:2021 - Injection"]}}},`,
			tail: `{"check_id":"go.sql","path":"a/c.go","extra":{}}]}`,
		},
		"govulncheck": {
			head: `{"config":{"scanner_name":"govulncheck","protocol_version":"v1.0.0"}}`,
			unit: `{"finding":{"osv":"GO-2021-0113","fixed_version":"v0.3.7","trace":[{"module":"golang.org/x/text","version":"v0.3.5",
				"package":"golang.org/x/text/language","function":"Parse"},{"module":"a","package":"a","function":"main","position":{"line":3}}]}}`,
			tail: `{"osv":{"id":"GO-2021-0113"}}`,
		},
		"osv-scanner": {
			head: `{"results":[{"source":{"path":"go.mod"},"packages":[{"vulnerabilities":[`,
			unit: `{"id":"GO-2021-0113","aliases":["CVE-2021-38561"],"summary":"Out-of-bounds read",
				"details":"Parse can panic on an invalid BCP 47 language tag. Whoever sends the tag can so end a program.",
				"database_specific":{"url":"https://pkg.go.dev/vuln/GO-2021-0113","review_status":"REVIEWED"},
				"affected":[{"package":{"name":"x"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"0.3.7"}]}]}]},`,
			tail: `{"id":"GO-2021-0114"}],"package":{"name":"x","version":"1","ecosystem":"Go"}}]}]}`,
		},
		"gitleaks": {
			head: `[`, unit: `{"RuleID":"key","Secret":"invented","Match":"key=invented","File":"a.txt","StartLine":1,"Fingerprint":"a:key:1"},`,
			tail: `{"RuleID":"key"}]`,
		},
	} {
		src.n = size / int64(len(src.unit))
		start := time.Now()
		grown, err := convertLarge(t, src)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Logf("%s: %d MiB in %s, memory grew by %d KiB", name, src.size()>>20, time.Since(start).Round(time.Millisecond), grown>>10)
		if grown > 16<<20 {
			t.Errorf("%s: a report of %d MiB takes %d MiB of memory, want at most 16", name, src.size()>>20, grown>>20)
		}
	}
}

// TestHeadsAreBounded has reports of nothing but heads, which readers keep in memory.
func TestHeadsAreBounded(t *testing.T) {
	testrun.Deep(t) // measures memory
	for name, src := range map[string]*repeated{
		"trivy targets":        {head: `{"SchemaVersion":2,"ArtifactName":"a","Results":[`, unit: `{"Target":"a"},`, tail: `{}]}`},
		"osv-scanner groups":   {head: `{"results":[{"packages":[`, unit: `{"groups":[{"ids":["a"]}]},`, tail: `{}]}]}`},
		"osv-scanner packages": {head: `{"results":[{"packages":[`, unit: `{},`, tail: `{}]}],"experimental_config":{}}`},
		"cluster resources":    {head: `{"ClusterName":"a","Resources":[`, unit: `{"Error":"a"},`, tail: `{}]}`},
	} {
		src.n = int64(testrun.Size(400_000, 4_000_000))
		grown, err := convertLarge(t, src)
		if limit := (*jsonstream.LimitError)(nil); err == nil || !errors.As(err, &limit) {
			t.Errorf("%s: error %v, want a LimitError", name, err)
		}
		if grown > 150<<20 {
			t.Errorf("%s: takes %d MiB of memory", name, grown>>20)
		}
	}
}
