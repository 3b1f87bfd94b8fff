package scans_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/traffic"
	"github.com/palisade/palisade/services/scans"
	"github.com/palisade/palisade/services/scans/sarif"
	"github.com/palisade/palisade/services/scans/watch"
)

// gate is a report in a file. It counts how often its results are read, and calls enter when a reader reaches a
// position.
type gate struct {
	*bytes.Reader
	open     bool // the report was checked
	readings int
	at       int64
	passed   bool
	enter    func() error
}

func (g *gate) Seek(offset int64, whence int) (int64, error) {
	if g.open && offset > 0 && whence == io.SeekStart {
		g.readings++
		g.passed = false
	}
	return g.Reader.Seek(offset, whence)
}

func (g *gate) Read(b []byte) (int, error) {
	if g.open && !g.passed && g.Size()-int64(g.Len()) >= g.at {
		g.passed = true
		if err := g.enter(); err != nil {
			return 0, err
		}
	}
	return g.Reader.Read(b)
}

// storing is an upload of a report of one run to acme/web, with a store of its own on the server's database.
type storing struct {
	*gate
	spool   string
	target  *scansv1.UploadReportTarget
	context context.Context
	stop    context.CancelFunc
	began   chan struct{}
	proceed chan struct{}
	ended   chan error
	answer  *scansv1.UploadReportResponse
}

func newStoring(t *testing.T, s *apitest.Server, raw []byte) *storing {
	u := &storing{
		gate: &gate{Reader: bytes.NewReader(raw), enter: func() error { return nil }}, spool: t.TempDir(),
		target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"}, ended: make(chan error, 1),
	}
	u.context, u.stop = context.WithCancel(tenant.NewContext(t.Context(), s.DeploymentID))
	t.Cleanup(u.stop)
	return u
}

// run stores the report. It returns a panic as an error.
func (u *storing) run(s *apitest.Server) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	report, err := sarif.Open(u.context, u.gate, sarif.DefaultLimits())
	if err != nil {
		return err
	}
	u.open = true
	files, err := spool.Open(u.spool, spool.Limits{}, func() {})
	if err != nil {
		return err
	}
	options := scans.UploadOptions{Spool: files, Calls: new(traffic.Calls), Watch: watch.New(s.Store, s.Config.StaleRefAge)}
	uploads := scans.NewReportUploads(s.Store, nil, options)
	u.answer, err = uploads.Store(u.context, u.target, report)
	return err
}

// hold starts to store a report, and returns when its results are read from a position on.
func hold(t *testing.T, s *apitest.Server, raw []byte, at int) *storing {
	t.Helper()
	u := newStoring(t, s, raw)
	u.at = int64(at)
	u.began, u.proceed = make(chan struct{}), make(chan struct{})
	u.enter = func() error {
		select {
		case u.began <- struct{}{}:
			select {
			case <-u.proceed:
			case <-u.context.Done():
			}
		case <-u.proceed: // released
		}
		return u.context.Err()
	}
	go func() { u.ended <- u.run(s) }()
	select {
	case <-u.began:
	case err := <-u.ended:
		t.Fatalf("the results were not read: %v", err)
	}
	return u
}

// finish releases a held report, and returns the answer.
func (u *storing) finish(t *testing.T) *scansv1.UploadReportResponse {
	t.Helper()
	close(u.proceed)
	if err := <-u.ended; err != nil {
		t.Fatal(err)
	}
	return u.answer
}

// alias declares a former name of a rule of gosec.
func alias(t *testing.T, s *apitest.Server, former, now string) {
	t.Helper()
	answer := s.Do(t, s.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/aliases", s.DeploymentID),
		`{"tool":"gosec","name":"`+former+`","canonical":"`+now+`"}`)
	if answer.Status/100 != 2 {
		t.Fatalf("alias: %d %s", answer.Status, answer.Body)
	}
}

// While a report is read, others can write, even to the same project. Their changes are used when the report is stored.
func TestNobodyWaitsWhileAReportIsRead(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "gosec", Results: []result{query, write}})
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: []result{query}}))
		held := hold(t, s, report, 0)
		ignore(t, s, "sqli")
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Setting.Create().SetName("test").SetValue([]byte("a write of the same process")).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, "while another one is read", upload(t, s, "main", report), [6]int32{1, 0, 1, 0, 0, 0})
		wantCounts(t, "the one that was held", held.finish(t), [6]int32{0, 0, 2, 0, 0, 0})
		if list := rows(t, s, "refs/heads/main"); len(list) != 2 || list[0].Status != "ignored" || list[1].Status != "open" {
			t.Errorf("%v", list)
		}
		var order []int64
		for _, row := range s.Store.Reader.Scan.Query().Order(ent.Asc("id")).AllX(s.System(t)) {
			order = append(order, row.StartedAt)
		}
		if len(order) != 3 || !slices.IsSorted(order) {
			t.Errorf("scans began at %v", order)
		}
	})
}

// A rule that was unknown when the report was read may be stored before the report is, with findings that the report
// also has.
func TestRulesThatComeWhileAReportIsRead(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := func(tool string, results ...result) []byte { return sarifOf(t, run{Tool: tool, Results: results}) }
		other := result{Rule: "sqli", File: "b.go", Code: "b()", Line: 3}
		for _, c := range []struct {
			tool        string
			first       []result
			wantOfOther [6]int32
		}{
			{"same", []result{query, write}, [6]int32{0, 0, 2, 0, 0, 0}},
			{"others", []result{write, other}, [6]int32{1, 0, 1, 0, 1, 0}},
		} {
			held := hold(t, s, report(c.tool, query, write), 0)
			wantCounts(t, c.tool, upload(t, s, "main", report(c.tool, c.first...)), [6]int32{2, 0, 0, 0, 0, 0})
			wantCounts(t, c.tool+", held", held.finish(t), c.wantOfOther)
			events := len(kinds(t, s))
			wantCounts(t, c.tool+", again", upload(t, s, "main", report(c.tool, query, write)), [6]int32{0, 0, 2, 0, 0, 0})
			if now := len(kinds(t, s)); now != events || held.readings != 1 {
				t.Errorf("%s: %d events were made by the same report, %d readings", c.tool, now-events, held.readings)
			}
		}
	})
}

// afterMany puts results after enough others that rule names are in use when holdNames holds the report.
func afterMany(results ...result) []result {
	var list []result
	for n := range fillers {
		list = append(list, result{Rule: "filler", File: fmt.Sprintf("fill/%d.go", n), Code: strings.Repeat("x", 2000), Line: 1})
	}
	return append(list, results...)
}

const fillers = 1000

// holdNames holds a report with results afterMany until alias has declared another name of a rule.
func holdNames(t *testing.T, s *apitest.Server, former, now string, rules []declared, results ...result) *storing {
	t.Helper()
	raw := sarifOf(t, run{Tool: "gosec", Rules: rules, Results: afterMany(results...)})
	held := hold(t, s, raw, len(raw)/4*3)
	alias(t, s, former, now)
	return held
}

// A rule that is renamed while a report is read has the new name in the findings, and keeps existing findings.
func TestNamesThatChangeWhileAReportIsRead(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: afterMany(query)}))
		ignore(t, s, "sqli")
		renamed := query
		renamed.Rule = "injection"
		held := holdNames(t, s, "sqli", "injection", nil, renamed, write)
		wantCounts(t, "the new name", held.finish(t), [6]int32{1, 1, fillers, 0, 0, 0})
		if held.readings != 2 {
			t.Errorf("%d readings", held.readings)
		}
		held = holdNames(t, s, "injection", "cwe-89", nil, query)
		answer := held.finish(t)
		wantCounts(t, "the old name", answer, [6]int32{0, 1, fillers, 0, 1, 0})
		if held.readings != 2 || answer.GetRuns()[0].GetResults() != fillers+1 {
			t.Errorf("%d readings: %v", held.readings, answer)
		}
		list := rows(t, s, "refs/heads/main")
		if len(list) != fillers+2 || list[fillers].Status != "ignored" || list[fillers+1].Status != "fixed" {
			t.Errorf("%v", list[fillers:])
		}
		if body := s.Get(t, "/api/v1/deployments/acme/findings?status=ignored"); !strings.Contains(body, `"rule_name":"cwe-89"`) {
			t.Errorf("%s", body)
		}
		wantCounts(t, "again", upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: afterMany(query)})), [6]int32{0, 0, fillers + 1, 0, 0, 0})
	})
}

// A report is read once, regardless of the former names that it declares. A user's alias that is added concurrently
// takes precedence.
func TestFormerNamesAreReadOnce(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", sarifOf(t, run{Tool: "gosec", Results: afterMany(query, write)}))
		renamed, newer := query, write
		renamed.Rule, newer.Rule = "sql-injection", "G900"
		rules := []declared{{"sql-injection", "sqli"}}
		report := sarifOf(t, run{Tool: "gosec", Rules: rules, Results: afterMany(renamed, write)})
		for _, want := range [][6]int32{{0, 1, fillers + 1, 0, 0, 0}, {0, 0, fillers + 2, 0, 0, 0}} {
			u := newStoring(t, s, report)
			if err := u.run(s); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, "declared", u.answer, want)
			if u.readings != 1 {
				t.Errorf("%d readings", u.readings)
			}
		}
		held := holdNames(t, s, "xss", "cross-site", []declared{{"G900", "xss"}}, renamed, newer)
		wantCounts(t, "a user says something else", held.finish(t), [6]int32{1, 0, fillers + 1, 0, 1, 0})
		if held.readings != 2 {
			t.Errorf("%d readings", held.readings)
		}
		var got []string
		for _, row := range s.Store.Reader.RuleAlias.Query().Order(ent.Asc("name")).AllX(s.System(t)) {
			got = append(got, row.Name+" is "+row.Canonical+" by "+row.Source)
		}
		if !slices.Equal(got, []string{"sqli is sql-injection by report", "xss is cross-site by user"}) {
			t.Errorf("%v", got)
		}
	})
}

// Aliases that several runs of a tool declare stay flat: no alias leads to another, and there are no cycles.
func TestAliasesOfSeveralRuns(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "gosec", Rules: []declared{{"b", "a"}}}, run{Tool: "gosec", Rules: []declared{{"c", "b"}}},
			run{Tool: "gosec", Rules: []declared{{"y", "x"}}}, run{Tool: "gosec", Rules: []declared{{"x", "y"}}})
		for range 2 {
			upload(t, s, "main", report)
			var got []string
			for _, row := range s.Store.Reader.RuleAlias.Query().Order(ent.Asc("name")).AllX(s.System(t)) {
				got = append(got, row.Name+" is "+row.Canonical)
			}
			if !slices.Equal(got, []string{"a is c", "b is c", "x is y"}) {
				t.Errorf("%v", got)
			}
		}
	})
}

var errBroken = errors.New("the disk is broken")

// large is a report of more than stays in memory while it is stored.
func large(t *testing.T) []byte {
	var results []result
	for n := range 6000 {
		results = append(results, result{Rule: fmt.Sprint("r", n%7), File: fmt.Sprintf("f%d.go", n), Code: strings.Repeat("x", 2000), Line: 1})
	}
	return sarifOf(t, run{Tool: "gosec", Results: results})
}

// A report changes nothing and leaves no file behind if it cannot be read or its client disconnects.
func TestReportsThatAreNotRead(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		raw := large(t)
		for name, end := range map[string]func(u *storing) error{
			"broken":    func(*storing) error { return errBroken },
			"panic":     func(*storing) error { panic("hostile") },
			"cancelled": func(u *storing) error { u.stop(); return nil },
			"half-way":  func(u *storing) error { u.Reset(raw[:len(raw)-len(raw)/8]); return nil },
		} {
			u := newStoring(t, s, raw)
			u.enter = func() error { return end(u) }
			if err := u.run(s); err == nil {
				t.Errorf("%s: stored", name)
			}
			wantNoFiles(t, name, u.spool)
			ctx := s.System(t)
			if n := s.Store.Reader.Project.Query().CountX(ctx) + s.Store.Reader.Scan.Query().CountX(ctx) + s.Store.Reader.Rule.Query().CountX(ctx); n != 0 {
				t.Errorf("%s: %d rows", name, n)
			}
		}
	})
}

// The spooled data of a report is deleted if the report cannot be stored.
func TestReportsThatAreNotStored(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		u := newStoring(t, s, large(t))
		u.target.Ref = "main\xff" // the data of a scan has to be valid UTF-8
		if err := u.run(s); err == nil || u.readings != 1 {
			t.Errorf("%v after %d readings", err, u.readings)
		}
		wantNoFiles(t, "not stored", u.spool)
		if n := s.Store.Reader.Project.Query().CountX(s.System(t)); n != 0 {
			t.Errorf("%d projects", n)
		}
	})
}

// wantNoFiles looks for files in a directory, and on Linux for unnamed files that the process has open there.
func wantNoFiles(t *testing.T, what, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%s: %v are left: %v", what, left, err)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range open {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, dir) {
			t.Errorf("%s: %s is open", what, name)
		}
	}
}
