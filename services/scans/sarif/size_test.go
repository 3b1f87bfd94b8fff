package sarif_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/sarif"
)

// repeated is a virtual file: a head, one unit n times, and a tail. It provides reports of a gigabyte without a disk.
type repeated struct {
	head, unit, tail string
	n, at            int64
}

func (r *repeated) size() int64 {
	return int64(len(r.head)) + r.n*int64(len(r.unit)) + int64(len(r.tail))
}

func (r *repeated) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, errors.New("only from the start")
	}
	r.at = offset
	return offset, nil
}

func (r *repeated) Read(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		part := r.rest()
		if part == "" {
			break
		}
		n := copy(p[done:], part)
		done += n
		r.at += int64(n)
	}
	if done == 0 {
		return 0, io.EOF
	}
	return done, nil
}

// rest is the rest of the part at the current offset.
func (r *repeated) rest() string {
	at := r.at
	if at < int64(len(r.head)) {
		return r.head[at:]
	}
	at -= int64(len(r.head))
	if at < r.n*int64(len(r.unit)) {
		return r.unit[at%int64(len(r.unit)):]
	}
	at -= r.n * int64(len(r.unit))
	if at < int64(len(r.tail)) {
		return r.tail[at:]
	}
	return ""
}

const typical = `{"ruleId":"G401","level":"warning","message":{"text":"Use of weak cryptographic primitive in {0}","arguments":["md5"]},
"locations":[{"physicalLocation":{"artifactLocation":{"uri":"tools/security/crypto.go","uriBaseId":"%SRCROOT%"},"region":{"startLine":26,
"startColumn":7,"endLine":26,"endColumn":17,"snippet":{"text":"h := md5.New()"}},"contextRegion":{"startLine":24,"endLine":28,
"snippet":{"text":"func sum(b []byte) []byte {\n\t// for the cache only\n\th := md5.New()\n\th.Write(b)\n\treturn h.Sum(nil)\n"}}}}],
"partialFingerprints":{"primaryLocationLineHash":"39fa2ee980eb94b0:1"},"properties":{"issue_severity":"MEDIUM","issue_confidence":"HIGH"}},
`

// large is a report of about the given size. Its rules follow its results, as gosec writes them.
func large(bytes int64) *repeated {
	return &repeated{
		head: `{"runs":[{"results":[`,
		unit: typical,
		n:    bytes / int64(len(typical)),
		tail: typical[:len(typical)-2] + `],"tool":{"driver":{"name":"gosec","rules":[{"id":"G401","properties":{"precision":"high"}}]}}}],"version":"2.1.0"}`,
	}
}

// peak measures by how much the memory obtained from the system grows while f runs.
func peak(f func(sample func())) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, highest := m.HeapInuse, m.HeapInuse
	f(func() {
		runtime.ReadMemStats(&m)
		highest = max(highest, m.HeapInuse)
	})
	return highest - before
}

func TestLargeReportsTakeFlatMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	src := large(32 << 20)
	grown := peak(func(sample func()) {
		report, err := sarif.Open(context.Background(), src, sarif.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		sample()
		results := 0
		err = report.Results(context.Background(), func(r *sarif.Result) error {
			if results++; results%10_000 == 0 {
				sample()
			}
			if r.Rule.Stub {
				return errors.New("the rule after the results is not found")
			}
			return nil
		}, func(s sarif.Skip) error { return errors.New(s.Reason) })
		if err != nil {
			t.Fatal(err)
		}
		if want := int(src.n) + 1; results != want || report.Bytes != src.size() {
			t.Errorf("%d results of %d bytes, want %d of %d", results, report.Bytes, want, src.size())
		}
	})
	if grown > 16<<20 {
		t.Errorf("a report of 32 MiB takes %d MiB of memory, want at most 16", grown>>20)
	}
}

// Small JSON must not become large structs. Each of these is a single result of 8 MiB.
func TestCraftedResultsTakeBoundedMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	for name, field := range map[string][2]string{
		"locations":    {`"locations":[`, `{},`},
		"related":      {`"relatedLocations":[`, `{},`},
		"arguments":    {`"message":{"text":"m","arguments":[`, `"",`},
		"suppressions": {`"suppressions":[`, `{},`},
		"tags":         {`"properties":{"tags":[`, `1,`},
		"code flows":   {`"codeFlows":[`, `{},`},
	} {
		last, end := strings.TrimSuffix(field[1], ","), "]"
		if strings.Count(field[0], "{") > 0 {
			end = "]}"
		}
		head := `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r",` + field[0]
		src := &repeated{head: head, unit: field[1], n: (8 << 20) / int64(len(field[1])), tail: last + end + `}]}]}`}
		grown := peak(func(sample func()) {
			report, err := sarif.Open(context.Background(), src, sarif.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sample()
			if o := collect(t, report); len(o.results) != 1 {
				t.Errorf("%s: %+v", name, o.skips)
			}
			sample()
		})
		if grown > 64<<20 {
			t.Errorf("%s: a result of 8 MiB takes %d MiB", name, grown>>20)
		}
	}
}

// The same for a crafted description of a run.
func TestCraftedRunsTakeBoundedMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	many := strings.Repeat("{},", 999) + "{}"
	for name, src := range map[string]*repeated{
		"parts of runs": {
			head: `{"version":"2.1.0","runs":[`, n: 255, tail: `{}]}`,
			unit: `{"tool":{"extensions":[` + many + `]},"taxonomies":[` + many + `],"invocations":[` + many + `]},`,
		},
		"artifacts": {head: `{"version":"2.1.0","runs":[{"artifacts":[`, unit: `{},`, n: 2_000_000, tail: `{}]}]}`},
		"rules": {
			head: `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t","rules":[`, n: 40_000, tail: `{}]}}}]}`,
			unit: `{"id":"a","relationships":[` + many[:60] + `{}],"properties":{"tags":["a","b","c","d","e"]}},`,
		},
	} {
		grown := peak(func(sample func()) {
			report, err := sarif.Open(context.Background(), src, sarif.Limits{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			sample()
			runtime.KeepAlive(report)
		})
		if grown > 120<<20 {
			t.Errorf("%s: a report of %d MiB takes %d MiB", name, src.size()>>20, grown>>20)
		}
	}
}

func TestOversizedValuesAreSkippedNotBuffered(t *testing.T) {
	limits := sarif.Limits{MaxResultBytes: 2000, MaxTokenBytes: 1500}
	big := `{"ruleId":"big","message":{"text":"m"},"codeFlows":[` + strings.Repeat(`{"n":1},`, 1000) + `{}]}`
	small := `{"ruleId":"small","message":{"text":"m"}}`
	doc := run(`"tool":{"driver":{"name":"t","rules":[{"id":"small"},` + big + `]}},"results":[` + small + "," + big + "," + small + `]`)
	report, err := sarif.Open(context.Background(), strings.NewReader(doc), limits)
	if err != nil {
		t.Fatal(err)
	}
	o := collect(t, report)
	if len(o.results) != 2 || len(o.skips) != 1 || o.skips[0].Index != 1 || !strings.Contains(o.skips[0].Reason, "more than 2000 bytes") {
		t.Errorf("%d results, skips %+v", len(o.results), o.skips)
	}
	w := report.Runs[0].Warnings
	if len(w) != 2 || !strings.HasPrefix(w[0], "/runs/0/tool/driver/rules/1 is ignored") || !strings.HasPrefix(w[1], "/runs/0/results/1 cannot be read") {
		t.Errorf("warnings %q", w)
	}
}

// TestATextOverTheLimitCostsItsResult: the results behind it are found, and no finding is closed.
func TestATextOverTheLimitCostsItsResult(t *testing.T) {
	limits := sarif.Limits{MaxResultBytes: 1 << 20, MaxTokenBytes: 1 << 20}
	long := `"` + strings.Repeat("x", 3<<20) + `"`
	doc := run(`"tool":{"driver":{"name":"t","rules":[{"id":"a","help":{"text":` + long + `}},{"id":"b","name":"good"}]}},
		"artifacts":[{"contents":{"text":` + long + `}},{"location":{"uri":"b.go"}}],
		"results":[{"ruleId":"a","message":{"text":"m"}},{"ruleId":"a","message":{"text":` + long + `}},
			{"ruleId":"b","message":{"text":"m"},"locations":[{"physicalLocation":{"artifactLocation":{"index":1}}}]}]`)
	report, err := sarif.Open(context.Background(), strings.NewReader(doc), limits)
	if err != nil {
		t.Fatal(err)
	}
	o := collect(t, report)
	if len(o.results) != 2 || len(o.skips) != 1 || o.skips[0].Index != 1 {
		t.Fatalf("%d results, skips %+v", len(o.results), o.skips)
	}
	if r := o.results[1]; r.Rule.Name != "good" || r.Path != "b.go" {
		t.Errorf("the result behind the long texts is %+v", r)
	}
	if report.Runs[0].Partial() == "" {
		t.Error("the report counts as complete")
	}
}

func BenchmarkReport(b *testing.B) {
	src := large(32 << 20)
	b.SetBytes(src.size())
	b.ReportAllocs()
	results := 0
	for range b.N {
		report, err := sarif.Open(context.Background(), src, sarif.Limits{})
		if err != nil {
			b.Fatal(err)
		}
		err = report.Results(context.Background(), func(*sarif.Result) error { results++; return nil },
			func(s sarif.Skip) error { return errors.New(s.Reason) })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(results)/b.Elapsed().Seconds(), "results/s")
}
