package ingest

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/spool"
)

// Rows are written without ent, so the list of columns has to be complete.
func TestFindingColumns(t *testing.T) {
	var written []string
	for _, column := range findingColumns {
		written = append(written, column.name)
	}
	schema := slices.DeleteFunc(slices.Clone(finding.Columns), func(name string) bool { return name == finding.FieldID })
	slices.Sort(written)
	slices.Sort(schema)
	if !slices.Equal(written, schema) {
		t.Errorf("rows have %v, the schema has %v", written, schema)
	}
	for _, name := range append(slices.Clone(upsertedColumns), finding.FieldPolicyMode) {
		if !slices.Contains(schema, name) {
			t.Errorf("an upsert takes %s, which the schema does not have", name)
		}
	}
}

// Equal columns share one parameter, and columns that are null in all rows are omitted.
func TestInsertPlan(t *testing.T) {
	advisory := "CVE-2026-1"
	rows := []*ent.Finding{
		{DeploymentID: 1, ProjectID: 2, RuleID: 3, Ref: "main", Fingerprint: "a", Content: []byte("same")},
		{DeploymentID: 1, ProjectID: 2, RuleID: 4, Ref: "main", Fingerprint: "b", Content: []byte("same"), Advisory: &advisory},
	}
	plan := planInsert(rows)
	uses := map[string]byte{}
	for n, column := range findingColumns {
		uses[column.name] = plan.uses[n]
	}
	for name, want := range map[string]byte{
		finding.FieldProjectID: useShared, finding.FieldRef: useShared, finding.FieldRuleID: useOwn, finding.FieldFingerprint: useOwn,
		finding.FieldContent: useOwn, finding.FieldAdvisory: useOwn, finding.FieldPackage: useNone,
	} {
		if uses[name] != want {
			t.Errorf("%s: %c, want %c", name, uses[name], want)
		}
	}
	arguments := plan.arguments(rows)
	if own := slices.Index(arguments, any("a")); own < len(plan.shared) || slices.Index(arguments, any("b")) < own {
		t.Errorf("arguments %v", arguments)
	}
}

var traceOf = rapid.Custom(func(t *rapid.T) trace {
	word, place := rapid.Uint64(), rapid.Int32Min(0)
	return trace{
		Evidence: identity.Evidence{
			Rule: word.Draw(t, "rule"), Path: word.Draw(t, "path"), MatchBased: word.Draw(t, "match"), ToolFingerprint: word.Draw(t, "tool"),
			Pattern: word.Draw(t, "pattern"), Code: word.Draw(t, "code"), Snippet: word.Draw(t, "snippet"), Shape: word.Draw(t, "shape"),
			Message: word.Draw(t, "message"), Line: place.Draw(t, "line"), Column: place.Draw(t, "column"),
			Base: rapid.Uint32().Draw(t, "base"), Parent: rapid.Uint32().Draw(t, "parent"), Dir: rapid.Uint32().Draw(t, "dir"),
			Specific: rapid.Bool().Draw(t, "specific"),
		},
		contentHash: rapid.Int64().Draw(t, "hash"), product: rapid.ByteMax(byte(len(products)-1)).Draw(t, "product"),
		muted: rapid.Bool().Draw(t, "muted"), hasPath: rapid.Bool().Draw(t, "has path"),
	}
})

func spaceIn(t testing.TB, dir string) spool.Space {
	t.Helper()
	files, err := spool.Open(dir, spool.Limits{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return files.Of(t.Context())
}

// Traces can be read back, from memory and from the file.
func TestTraces(t *testing.T) {
	dir := t.TempDir()
	space := spaceIn(t, dir)
	rapid.Check(t, func(t *rapid.T) {
		list := &traces{spill: newSpill(space, rapid.SampledFrom([]int{0, partSize, maxTraces}).Draw(t, "room")), part: -1}
		defer list.close()
		some := rapid.SliceOfN(traceOf, 1, 5).Draw(t, "traces")
		size := rapid.IntRange(1, 3*tracesInPart).Draw(t, "size")
		for n := range size {
			list.add(some[n%len(some)])
		}
		list.done()
		for n := range size {
			if got := list.at(n); got != some[n%len(some)] {
				t.Fatalf("%d: got %+v, want %+v", n, got, some[n%len(some)])
			}
		}
		for range 10 {
			n := rapid.IntRange(0, size-1).Draw(t, "n")
			if got := list.find(n); got != some[n%len(some)] {
				t.Fatalf("%d: got %+v, want %+v", n, got, some[n%len(some)])
			}
		}
		if list.spill.failed != nil {
			t.Fatal(list.spill.failed)
		}
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// The journal returns the results that are wanted.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	space := spaceIn(t, dir)
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(space)
		j.spill.room = rapid.SampledFrom([]int{0, partSize, maxJournal}).Draw(t, "room")
		defer j.close()
		groups := []*group{{Analysis: Analysis{Tool: "lint", Category: ""}}, {Analysis: Analysis{Tool: "scan", Category: "night"}}}
		rules := []*Rule{{Name: "r1"}, {Name: "r2"}}
		var want []*Result
		size := rapid.IntRange(0, 400).Draw(t, "results")
		text := rapid.StringN(0, 5, -1)
		for n := range size {
			i := &Result{of: groups[n%2], Rule: rules[n/3%2], ruleName: rules[n/3%2].Name, ruleID: int64(n/3%2) + 1, contentHash: int64(n) - 7}
			i.Group = i.of.Analysis
			if n < 3 {
				for _, field := range i.texts() {
					*field = text.Draw(t, "text")
				}
			}
			i.Suppressed, i.Malicious = rapid.Bool().Draw(t, "suppressed"), n%5 == 0
			i.Historical, i.ownID = n%3 == 0, n%2 == 0
			i.encoded = make([]byte, rapid.SampledFrom([]int{0, 1, 900, 5000}).Draw(t, "size"))
			j.add(i)
			want = append(want, i)
		}
		j.spill.seal()
		next := map[*group]int{}
		n := 0
		err := j.each(func(g *group) (int, bool) {
			next[g]++
			return next[g] - 1, (next[g]-1)%2 == 0
		}, func(got *Result) error {
			for n%4 >= 2 { // every other result of each group is not wanted
				n++
			}
			w := want[n]
			w.result = n / 2
			if fmt.Sprint(*got) != fmt.Sprint(*w) {
				t.Errorf("%d: got %+v, want %+v", n, *got, *w)
			}
			n++
			return nil
		})
		if err != nil || n < size-2 {
			t.Errorf("%d of %d came back: %v", n, size, err)
		}
	})
}

// Content is encoded once, and hashed as if it had no commit.
func TestHashWithoutCommit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		content := &storev1.FindingContent{
			Location: &findingsv1.FindingLocation{FilePath: "a.go", Line: 3}, Message: text.Draw(t, "message"),
			ToolFingerprint: text.Draw(t, "fingerprint"), HistoricalCommit: text.Draw(t, "historical"),
		}
		bare, err := (proto.MarshalOptions{Deterministic: true}).Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		i := &Result{Content: content, Product: rapid.SampledFrom([]string{vocabulary.SAST, vocabulary.SCA}).Draw(t, "product")}
		if _, err := i.encode(nil, text.Draw(t, "commit"), rapid.Int64().Draw(t, "time")); err != nil {
			t.Fatal(err)
		}
		if want := int64(xxhash.Sum64(append(bare, make([]byte, 8)...))); i.contentHash != want {
			t.Errorf("hash %d, want %d", i.contentHash, want)
		}
		back := &storev1.FindingContent{}
		if err := proto.Unmarshal(i.encoded, back); err != nil || !proto.Equal(back, content) {
			t.Errorf("got %v, want %v (%v)", back, content, err)
		}
	})
}

func BenchmarkJournal(b *testing.B) {
	j := newJournal(spaceIn(b, b.TempDir()))
	defer j.close()
	i := &Result{of: &group{}, Rule: &Rule{}, ruleName: "r", Product: vocabulary.SAST, Severity: "high", path: "services/a/b.go", initialFingerprint: "0123456789abcdef0123456789abcdef", encoded: make([]byte, 700)}
	b.ReportAllocs()
	for b.Loop() {
		j.add(i)
	}
}

func BenchmarkEncode(b *testing.B) {
	content := &storev1.FindingContent{
		Location: &findingsv1.FindingLocation{FilePath: "services/a/b.go", Line: 3}, Message: "the value comes from an untrusted request",
		Snippet: "rows, err := db.Query(q)", SyntacticId: "0123456789abcdef0123456789abcdef", MatchBasedId: "0123456789abcdef_0", IdentityRung: "snippet",
	}
	i := &Result{Content: content, Severity: "high"}
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buffer, err = i.encode(buffer[:0], "c0ffee", 1); err != nil {
			b.Fatal(err)
		}
	}
}
