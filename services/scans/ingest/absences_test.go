package ingest

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scancoverage"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// everyFile is the source of a scan that reports one finding in each of its files.
type everyFile []string

func (files everyFile) Each(_ context.Context, yield func(*Result) error) error {
	about := &Rule{Name: "rule", Text: &findingsv1.FindingRule{Category: "security", Confidence: "medium"}}
	for _, file := range files {
		err := yield(&Result{Group: Analysis{Tool: "semgrep"}, Product: vocabulary.SAST, Severity: "high", Rule: about, Content: &storev1.FindingContent{
			Location: &findingsv1.FindingLocation{FilePath: file, Line: 1, EndLine: 1}, Message: "found", Snippet: "eval(" + file + ")",
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (files everyFile) Coverages() (map[Analysis]*Coverage, error) {
	return map[Analysis]*Coverage{{Tool: "semgrep"}: {ListsAll: true, Products: []string{vocabulary.SAST}, ScanCoverage: &storev1.ScanCoverage{
		RulesKnown: true, Rules: []string{"rule"}, FilesKnown: true, Files: files,
	}}}, nil
}

// fatal is what the two kinds of tests have in common.
type fatal interface{ Fatal(args ...any) }

// matrix is a project whose jobs scan parts of it.
type matrix struct {
	store   *store.Store
	project *ent.Project
}

func newMatrix(t fatal, st *store.Store, name string) *matrix {
	m := &matrix{store: st}
	err := st.Write(m.ctx(), func(ctx context.Context, tx *ent.Tx) (err error) {
		m.project, err = tx.Project.Create().SetDeploymentID(1).SetName(name).SetNameKey(name).SetCreatedAt(1).Save(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *matrix) ctx() context.Context { return tenant.NewContext(context.Background(), 1) }

// scan stores a full scan of some files of a commit, by the scanner protocol.
func (m *matrix) scan(commit int, files []string) error {
	return m.store.Write(m.ctx(), func(ctx context.Context, tx *ent.Tx) error {
		of, err := tx.Scan.Create().SetDeploymentID(1).SetProjectID(m.project.ID).SetRef("refs/heads/main").SetCommit(fmt.Sprint("c", commit)).
			SetCommitTime(int64(commit + 1)).SetStatus("SCAN_STATUS_RUNNING").SetProducts(0).SetIsFullScan(true).SetMeta([]byte{}).
			SetStats(map[string]any{ExactCommitTime: true}).SetUniqueID(rand.Text()).SetStartedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		read, err := Read(ctx, tx.Client(), Input{Results: everyFile(files), Commit: of.Commit})
		if err != nil {
			return err
		}
		_, err = Store(ctx, tx, Target{Store: m.store, Project: m.project, Scan: of}, read)
		return err
	})
}

// open returns the files with an open finding.
func (m *matrix) open(t fatal) map[string]bool {
	rows, err := m.store.Reader.Finding.Query().Where(finding.ProjectID(m.project.ID), finding.State(lifecycle.Unresolved)).All(m.ctx())
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, row := range rows {
		open[*row.FilePath] = true
	}
	return open
}

// partitions tell the part of a file. Parts are directories or types of files.
var partitions = map[string]func(string) string{
	"whole":             func(string) string { return "" },
	"directories":       path.Dir,
	"types":             path.Ext,
	"a, and the others": func(file string) string { return fmt.Sprint(path.Dir(file) == "a") },
	"directories and types": func(file string) string {
		if path.Dir(file) == "a" {
			return "a" + path.Ext(file)
		}
		return path.Dir(file)
	},
}

// everywhere is a file that all jobs scan.
const everywhere = "package-lock.json"

func someFiles() (files []string) {
	for _, dir := range []string{"a", "b", "c/d"} {
		for _, name := range []string{"x.py", "y.py", "z.py", "x.js", "y.js"} {
			files = append(files, dir+"/"+name)
		}
	}
	return files
}

// job is a scan of a part of a commit.
type job struct {
	commit int
	part   string
	files  []string
}

// jobsOf are the jobs of one commit. Jobs without files have nothing to report.
func jobsOf(commit int, tree []string, part func(string) string) (list []job) {
	parts := map[string][]string{}
	for _, file := range tree {
		parts[part(file)] = append(parts[part(file)], file)
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		list = append(list, job{commit, name, append([]string{everywhere}, parts[name]...)})
	}
	return list
}

// No order of the jobs of a matrix closes a finding in a file that its commit has. A file that is gone is found, if a
// file beside it stays.
func TestPartsNeverCloseFalsely(t *testing.T) {
	t.Parallel()
	st, n := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)}), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		m := newMatrix(t, st, fmt.Sprint("acme/", n))
		part := partitions[rapid.SampledFrom(slices.Sorted(maps.Keys(partitions))).Draw(t, "partition")]
		tree := rapid.SliceOfNDistinct(rapid.SampledFrom(someFiles()), 4, 12, rapid.ID[string]).Draw(t, "tree")
		slices.Sort(tree)
		trees := [][]string{tree}
		for range rapid.IntRange(1, 3).Draw(t, "commits") {
			tree = slices.DeleteFunc(slices.Clone(tree), func(string) bool { return rapid.IntRange(0, 5).Draw(t, "dice") == 0 })
			trees = append(trees, tree)
		}
		var jobs []job
		if rapid.Bool().Draw(t, "was whole") { // the first commit was scanned as a whole
			m.check(t, jobsOf(0, trees[0], partitions["whole"])[0], trees)
		}
		for commit, tree := range trees[:len(trees)-1] {
			jobs = append(jobs, jobsOf(commit, tree, part)...)
		}
		for _, j := range rapid.Permutation(jobs).Draw(t, "order") {
			m.check(t, j, trees)
		}
		for _, j := range rapid.Permutation(jobsOf(len(trees)-1, tree, part)).Draw(t, "order of the last commit") {
			m.check(t, j, trees)
		}
		open := m.open(t)
		for _, file := range tree {
			if !open[file] {
				t.Fatalf("%s is in the last commit, and its finding is closed", file)
			}
		}
		for file := range open {
			stays := func(other string) bool { return cellOf(other) == cellOf(file) }
			if file != everywhere && !slices.Contains(tree, file) && slices.ContainsFunc(tree, stays) {
				t.Fatalf("%s is gone, and its finding is open", file)
			}
		}
	})
}

// check stores a job, and fails if it closes a finding in a file of its commit.
func (m *matrix) check(t *rapid.T, j job, trees [][]string) {
	before := m.open(t)
	if err := m.scan(j.commit, j.files); err != nil {
		t.Fatal(err)
	}
	after := m.open(t)
	for file := range before {
		if !after[file] && (file == everywhere || slices.Contains(trees[j.commit], file)) {
			t.Fatalf("commit %d, part %q closed %s, which this commit has", j.commit, j.part, file)
		}
	}
}

// age makes the files that the latest scan missed look as if they had been missed for longer.
func (m *matrix) age(t *testing.T, by time.Duration) {
	t.Helper()
	err := m.store.Write(m.ctx(), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.ScanCoverage.Query().Where(scancoverage.ProjectID(m.project.ID)).Order(ent.Desc(scancoverage.FieldID)).First(ctx)
		if err != nil {
			return err
		}
		about := &storev1.ScanCoverage{}
		if err := Decompress(row.Content, about); err != nil {
			return err
		}
		for _, missed := range about.GetUnsearched() {
			missed.Since -= by.Microseconds()
		}
		content, err := Compress(about)
		if err != nil {
			return err
		}
		if err := tx.ScanCoverage.DeleteOne(row).Exec(ctx); err != nil {
			return err
		}
		return tx.ScanCoverage.Create().SetDeploymentID(1).SetScanID(row.ScanID).SetProjectID(row.ProjectID).SetRef(row.Ref).SetTool(row.Tool).
			SetAnalysisCategory(row.AnalysisCategory).SetIsFullScan(true).SetContent(content).SetAt(row.At).SetNillableCommitTime(row.CommitTime).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	jsFiles = "web/a.js web/b.js web/c.js"
	goAndJS = "api/x.go " + jsFiles
)

// Files that no scan searches are gone in the end: a deleted directory after a day, a part that never runs after a
// month.
func TestUnsearchedFilesAreGoneInTheEnd(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	type step struct {
		files []string
		age   time.Duration // after the scan
		want  string        // open files
	}
	web, api, all := strings.Fields(jsFiles), []string{"api/x.go"}, strings.Fields(goAndJS)
	for name, steps := range map[string][]step{
		"deleted directory":   {{all, 0, goAndJS}, {web, 23 * time.Hour, goAndJS}, {web, time.Hour, goAndJS}, {web, 0, jsFiles}},
		"another part":        {{all, 0, goAndJS}, {web, 23 * time.Hour, goAndJS}, {api, 0, goAndJS}, {web, 48 * time.Hour, goAndJS}, {web, 0, goAndJS}},
		"a part of long ago":  {{api, 0, "api/x.go"}, {web, forgottenAfter, goAndJS}, {web, 0, jsFiles}},
		"a file beside":       {{all, 0, goAndJS}, {append(web[:2:2], api...), 0, "api/x.go web/a.js web/b.js"}},
		"another type beside": {{[]string{"a.go", "b.go", "x.js"}, 0, "a.go b.go x.js"}, {[]string{"a.go", "b.go"}, 0, "a.go b.go x.js"}},
	} {
		m := newMatrix(t, st, "acme/"+name)
		for n, s := range steps {
			if err := m.scan(n, s.files); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(m.open(t))), " "); got != s.want {
				t.Errorf("%s, scan %d: %s, want %s", name, n, got, s.want)
			}
			m.age(t, s.age)
		}
	}
}
