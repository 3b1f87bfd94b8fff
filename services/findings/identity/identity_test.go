package identity_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/testrun"
)

var base = identity.Text{Rule: "G401", Path: "tools/crypto.go", Snippet: "h := md5.New()", Message: "weak hash"}

func assign(all ...identity.Text) []identity.Identity {
	a := identity.NewAssigner()
	ids := make([]identity.Identity, 0, len(all))
	for _, e := range all {
		ids = append(ids, a.Assign("gosec", e))
	}
	return ids
}

func TestLadderTakesTheStrongestEvidence(t *testing.T) {
	full := base
	full.MatchBasedID, full.ToolFingerprint = "abc_0", "contextHash/v1:77"
	noMatch := full
	noMatch.MatchBasedID = ""
	onlyMessage := base
	onlyMessage.Snippet = " \n\t "
	for _, c := range []struct {
		rung string
		e    identity.Text
	}{
		{identity.RungMatchBasedID, full}, {identity.RungToolFingerprint, noMatch},
		{identity.RungSnippet, base}, {identity.RungMessage, onlyMessage},
	} {
		if got := assign(c.e)[0]; got.Rung != c.rung {
			t.Errorf("rung is %s, want %s", got.Rung, c.rung)
		}
	}
}

// The fingerprints are stored, so changing them needs a new Version.
func TestFormsArePinned(t *testing.T) {
	id := assign(base, base)[1]
	want := identity.Identity{
		Fingerprint: "68b34ca87f70c2a689a5327c66691a40", Rung: identity.RungSnippet, Occurrence: 1,
		SyntacticID: "89baae9a9b23382ae547aff15859d40d",
		MatchBasedID: "4ea088393ae09219b9027370e70a5af4f636beab2dfd97ef1a1b55a340397b2c" +
			"77e33a196001dc5f33e9317df036bffc5ab701f3ca5f4ef151c6045f18b8e699_1",
	}
	if id != want {
		t.Errorf("got  %+v\nwant %+v", id, want)
	}
}

func TestMatchBasedIDOfTheToolIsKept(t *testing.T) {
	e := base
	e.MatchBasedID = "deadbeef_3"
	ids := assign(e, e)
	if ids[0].MatchBasedID != "deadbeef_3" || ids[1].MatchBasedID != "deadbeef_3" {
		t.Errorf("match-based ids %q and %q, want the tool's", ids[0].MatchBasedID, ids[1].MatchBasedID)
	}
	if ids[0].Fingerprint == ids[1].Fingerprint {
		t.Error("two results of one match-based id have one fingerprint")
	}
}

func TestEachPartOfTheIdentityCounts(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*identity.Text){
		"nothing": func(*identity.Text) {},
		"rule":    func(e *identity.Text) { e.Rule = "G501" },
		"path":    func(e *identity.Text) { e.Path = "other.go" },
		"snippet": func(e *identity.Text) { e.Snippet = "h := sha1.New()" },
		// The boundary between two parts counts, too.
		"boundary": func(e *identity.Text) { e.Rule, e.Path = e.Rule+"t", e.Path[1:] },
	} {
		e := base
		change(&e)
		id := assign(e)[0].Fingerprint
		if other, ok := seen[id]; ok {
			t.Errorf("changing %s and %s give one fingerprint", name, other)
		}
		seen[id] = name
	}
}

func TestLineNumbersInTextsDoNotCount(t *testing.T) {
	same := func(name string, change func(e *identity.Text, line int)) {
		t.Helper()
		a, b := base, base
		change(&a, 12)
		change(&b, 1345)
		if assign(a)[0] != assign(b)[0] {
			t.Errorf("%s: the identity changes with the line number", name)
		}
	}
	same("position in the message", func(e *identity.Text, n int) {
		e.Snippet, e.Message = "", fmt.Sprintf("'FunctionExpression' at %d:23", n)
	})
	same("line in words", func(e *identity.Text, n int) {
		e.Snippet, e.Message = "", fmt.Sprintf("shadows the declaration at line %d", n)
	})
	same("numbered snippet", func(e *identity.Text, n int) {
		e.Snippet = fmt.Sprintf("%d: h := md5.New()\n%d: h.Write(b)", n, n+1)
	})
}

func evidence() *rapid.Generator[identity.Text] {
	return rapid.Custom(func(t *rapid.T) identity.Text {
		word := rapid.SampledFrom([]string{"a", "b", "x y", ""})
		return identity.Text{
			Rule: word.Draw(t, "rule"), Path: word.Draw(t, "path"), MatchBasedID: word.Draw(t, "match"),
			ToolFingerprint: word.Draw(t, "fingerprint"), Snippet: word.Draw(t, "snippet"), Message: word.Draw(t, "message"),
		}
	})
}

func TestFingerprintsAreUniqueAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(evidence(), 0, 60).Draw(t, "results")
		once, again := assign(all...), assign(all...)
		seen := map[string]bool{}
		for i := range once {
			if once[i] != again[i] {
				t.Fatalf("result %d: %+v, then %+v", i, once[i], again[i])
			}
			if seen[once[i].Fingerprint] {
				t.Fatalf("result %d: fingerprint %s appears twice", i, once[i].Fingerprint)
			}
			seen[once[i].Fingerprint] = true
			if len(once[i].Fingerprint) != 32 || len(once[i].SyntacticID) != 32 {
				t.Fatalf("result %d: %+v, want 32 digits", i, once[i])
			}
		}
	})
}

func TestEqualResultsAreCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := evidence().Draw(t, "result")
		n := rapid.IntRange(1, 200).Draw(t, "n")
		all := make([]identity.Text, n)
		for i := range all {
			all[i] = e
		}
		seen := map[string]bool{}
		for i, id := range assign(all...) {
			if id.Occurrence != i {
				t.Fatalf("occurrence is %d, want %d", id.Occurrence, i)
			}
			seen[id.Fingerprint] = true
		}
		if len(seen) != n {
			t.Fatalf("%d equal results have %d fingerprints", n, len(seen))
		}
	})
}

func TestReindentingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z(){}=]{1,8}`), 1, 20).Draw(t, "words")
		space := rapid.SampledFrom([]string{" ", "\t", "\n", "\r\n", "  \n\t\t", "\u00a0"})
		draw := func(label string) string {
			var b strings.Builder
			for _, w := range words {
				b.WriteString(space.Draw(t, label))
				b.WriteString(w)
			}
			return b.String()
		}
		for _, field := range []func(*identity.Text, string){
			func(e *identity.Text, s string) { e.Snippet = s },
			func(e *identity.Text, s string) { e.Snippet, e.Message = "", s },
		} {
			a, b := base, base
			field(&a, draw("before"))
			field(&b, draw("after"))
			if assign(a)[0] != assign(b)[0] {
				t.Fatalf("%q and %q differ", a.Snippet+a.Message, b.Snippet+b.Message)
			}
		}
	})
}

// Unrelated results in between do not change the others' identities.
func TestOtherResultsDoNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		others := rapid.SliceOfN(evidence(), 0, 30).Draw(t, "others")
		alone := assign(base)[0]
		a := identity.NewAssigner()
		for _, e := range others {
			a.Assign("gosec", e)
		}
		if got := a.Assign("gosec", base); got != alone {
			t.Fatalf("after %d other results %+v, want %+v", len(others), got, alone)
		}
	})
}

func TestManyResultsStaySmall(t *testing.T) {
	testrun.Deep(t) // measures memory
	if testing.Short() {
		t.Skip("takes a second")
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	a := identity.NewAssigner()
	e := base
	for i := range 250_000 {
		e.Snippet = fmt.Sprintf("call_%d()", i)
		a.Assign("gosec", e)
	}
	if grown := int64(heap()) - int64(before); grown > 24<<20 {
		t.Errorf("250,000 distinct results take %d MiB, want at most 24", grown>>20)
	}
	runtime.KeepAlive(a)
}

func BenchmarkAssign(b *testing.B) {
	a := identity.NewAssigner()
	b.ReportAllocs()
	e := base
	for i := range b.N {
		e.Path = fmt.Sprintf("src/file_%d.go", i%1000)
		a.Assign("gosec", e)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
}
