package identity_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/testrun"
)

// BenchmarkMatch matches reports of 300,000 results: unchanged, all shifted, and all on equal lines.
func BenchmarkMatch(b *testing.B) {
	const n = 300_000
	report := func(shift int, code func(i int) string) []identity.Text {
		all := make([]identity.Text, n)
		for i := range all {
			all[i] = at(fmt.Sprint("rule", i%50), fmt.Sprintf("src/dir%d/file%d.go", i%70, i%3000), i/3000*5+shift, code(i))
		}
		return all
	}
	distinct := func(i int) string { return fmt.Sprintf("call%d(argument)", i) }
	equal := func(int) string { return "call(argument)" }
	for name, texts := range map[string][2][]identity.Text{
		"same":    {report(1, distinct), report(1, distinct)},
		"shifted": {report(1, distinct), report(12, distinct)},
		"equal":   {report(1, equal), report(4, equal)[:n-5000]},
	} {
		known, results := knownOf(texts[0]), evidenceOf(texts[1])
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				identity.Match(known, results, identity.Options{})
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "results/s")
		})
	}
}

// No report is expensive to match. The limit is far above the usual time, and far below the time of a quadratic
// algorithm. It limits processor time, because wall time depends on how busy the machine is.
func TestNoReportIsExpensive(t *testing.T) {
	testrun.Deep(t) // measures processor time
	const n = 50_000
	report := func(one func(i int) identity.Text) []identity.Text { return reportOf(n, one) }
	equal := func(every int) []identity.Text {
		return report(func(i int) identity.Text { return at("a", "f.go", 1+i*every, "call(argument)") })
	}
	oneLine := func(message string) []identity.Text {
		return report(func(i int) identity.Text {
			text := at("a", "f.go", 7, "")
			text.Message = fmt.Sprint(message, " ", i%9, " of ", i)
			return text
		})
	}
	files := func(dir string) []identity.Text {
		return report(func(i int) identity.Text {
			return at("a", fmt.Sprintf("%s%d/index.go", dir, i), 7, "call(argument, and, another)")
		})
	}
	for name, c := range map[string]struct{ before, after []identity.Text }{
		"one file of equal hits, fewer":        {equal(3), equal(3)[:n-777]},
		"one file of equal hits, spread":       {equal(3), equal(5)[:n-1]},
		"one line of other messages":           {oneLine("before"), oneLine("after")[:n-3]},
		"equal files that all moved":           {files("old"), files("new")},
		"nothing in common":                    {equal(1), report(func(i int) identity.Text { return at("b", fmt.Sprint("g", i), i, fmt.Sprint("other ", i)) })},
		"hits that stayed on one line, spread": {equal(0), equal(2)[:n-9]},
	} {
		t.Run(name, func(t *testing.T) {
			known, results := knownOf(c.before), evidenceOf(c.after)
			start := computed(t)
			checkOneToOne(t, known, identity.Match(known, results, identity.Options{}))
			took := computed(t) - start
			if took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
			t.Logf("%v", took)
		})
	}
}

// computed returns the processor time of this process. No other test of this package runs in parallel.
func computed(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func reportOf(n int, one func(i int) identity.Text) []identity.Text {
	all := make([]identity.Text, n)
	for i := range all {
		all[i] = one(i)
	}
	return all
}

// Matching an unchanged report takes at most 100 bytes per result in addition to the arguments.
func TestSameReportTakesLittleMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	const n = 100_000
	all := reportOf(n, func(i int) identity.Text { return at("a", fmt.Sprint("f", i%999), i, fmt.Sprintf("call%d()", i)) })
	known, results := knownOf(all), evidenceOf(all)
	took := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			identity.Match(known, results, identity.Options{})
		}
	}).AllocedBytesPerOp()
	if took > 100*n {
		t.Errorf("%d bytes for each result, want at most 100", took/n)
	}
}
