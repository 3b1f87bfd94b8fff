package scans_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/apitest"
)

// productStates are the products and states of all findings, in the order of their ids.
func productStates(t *testing.T, s *apitest.Server) (list []string) {
	t.Helper()
	for _, f := range s.Store.Reader.Finding.Query().Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
		list = append(list, f.IssueType+" "+f.State)
	}
	return list
}

func wantProductStates(t *testing.T, s *apitest.Server, what string, want ...string) {
	t.Helper()
	if got := productStates(t, s); !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// TestReportReplacesItsProductOnly: a report of one product does not close findings of another, although both have the
// same tool, category and ref.
func TestReportReplacesItsProductOnly(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		code := sarifOf(t, run{Tool: "multi", Results: []result{sqli, xss}})
		token := result{Rule: "token", File: "env", Code: "x", Line: 1}
		wantCounts(t, "code", upload(t, s, "main", code), [6]int32{2, 0, 0, 0, 0, 0})
		wantCounts(t, "secrets", upload(t, s, "main", sarifOf(t, run{Tool: "multi", Results: []result{token}}), "product", "secrets"), [6]int32{1, 0, 0, 0, 0, 0})
		wantProductStates(t, s, "secrets after code", "sast unresolved", "sast unresolved", "secrets unresolved")
		wantCounts(t, "no dependencies", upload(t, s, "main", sarifOf(t, run{Tool: "multi"}), "product", "sca"), [6]int32{})
		wantCounts(t, "the same code", upload(t, s, "main", code), [6]int32{0, 0, 2, 0, 0, 0})
		wantCounts(t, "less code", upload(t, s, "main", sarifOf(t, run{Tool: "multi", Results: []result{xss}}), "product", "sast"), [6]int32{0, 0, 1, 0, 1, 0})
		wantProductStates(t, s, "less code", "sast fixed", "sast unresolved", "secrets unresolved")
		wantCounts(t, "no secrets", upload(t, s, "main", sarifOf(t, run{Tool: "multi"}), "product", "secrets"), [6]int32{0, 0, 0, 0, 1, 0})
		wantProductStates(t, s, "no secrets", "sast fixed", "sast unresolved", "secrets fixed")
	})
}

// mixed is a report of a tool with results of code and of dependencies. A number is a dependency, 0 is code.
func mixed(of ...int) []byte {
	var results []string
	for _, n := range of {
		rule, file, properties := "eval", "a.js", ""
		if n > 0 {
			rule, file, properties = fmt.Sprintf("CVE-2021-1234%d", n), "package-lock.json", fmt.Sprintf(`,"properties":{"purl":"pkg:npm/left%d@1.0"}`, n)
		}
		results = append(results, fmt.Sprintf(`{"ruleId":%q,"message":{"text":"bad"}%s,
			"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":%d}}}]}`, rule, properties, file, n+3))
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"multi"}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

// TestDependenciesInAReportOfCode: a result with a package and an advisory is one of a dependency, whatever the tool.
// A report with such results replaces the dependencies, too, and so do the reports after it, which may have none left.
func TestDependenciesInAReportOfCode(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", mixed(1, 2, 0))
		wantCounts(t, "one fixed", upload(t, s, "main", mixed(2, 0)), [6]int32{0, 0, 2, 0, 1, 0})
		wantProductStates(t, s, "one fixed", "sca fixed", "sca unresolved", "sast unresolved")
		wantCounts(t, "code only", upload(t, s, "main", mixed(0)), [6]int32{0, 0, 1, 0, 1, 0})
		wantProductStates(t, s, "code only", "sca fixed", "sca fixed", "sast unresolved")
		wantCounts(t, "one is back", upload(t, s, "main", mixed(2, 0)), [6]int32{0, 0, 1, 1, 0, 0})
		wantCounts(t, "nothing", upload(t, s, "main", mixed()), [6]int32{0, 0, 0, 0, 2, 0})
	})
}

// TestReportsThatTakeTurns: a report of code and one of dependencies by the same tool do not close each other's
// findings. If they were one report before, only the first one of them closes what it lacks.
func TestReportsThatTakeTurns(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		dependencies := []string{"product", "sca"}
		upload(t, s, "main", mixed(0))
		upload(t, s, "main", mixed(1), dependencies...)
		wantCounts(t, "code again", upload(t, s, "main", mixed(0)), [6]int32{0, 0, 1, 0, 0, 0})
		wantCounts(t, "dependencies again", upload(t, s, "main", mixed(1), dependencies...), [6]int32{0, 0, 1, 0, 0, 0})
		upload(t, s, "main", mixed(1, 0))
		wantCounts(t, "code after one report of both", upload(t, s, "main", mixed(0)), [6]int32{0, 0, 1, 0, 1, 0})
		wantCounts(t, "dependencies after it", upload(t, s, "main", mixed(1), dependencies...), [6]int32{0, 0, 0, 1, 0, 0})
		wantCounts(t, "code in turns", upload(t, s, "main", mixed(0)), [6]int32{0, 0, 1, 0, 0, 0})
		wantProductStates(t, s, "in turns", "sast unresolved", "sca unresolved")
	})
}

// TestSameResultOfTwoProducts: equal results of two products are two findings, and neither report changes the other's.
func TestSameResultOfTwoProducts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := sarifOf(t, run{Tool: "multi", Results: []result{sqli}})
		upload(t, s, "main", report)
		wantCounts(t, "as a secret", upload(t, s, "main", report, "product", "secrets"), [6]int32{1, 0, 0, 0, 0, 0})
		for _, product := range []string{"sast", "secrets"} {
			wantCounts(t, "again as "+product, upload(t, s, "main", report, "product", product), [6]int32{0, 0, 1, 0, 0, 0})
		}
		wantCounts(t, "on another ref", upload(t, s, "dev", report, "product", "secrets"), [6]int32{1, 0, 0, 0, 0, 0})
		wantCounts(t, "code is gone", upload(t, s, "main", sarifOf(t, run{Tool: "multi"})), [6]int32{0, 0, 0, 0, 1, 0})
		wantProductStates(t, s, "code is gone", "sast fixed", "secrets unresolved", "secrets unresolved")
		wantCounts(t, "code is back", upload(t, s, "main", report), [6]int32{0, 0, 0, 1, 0, 0})
	})
}

// TestFileMissingOfOneProduct: a file that is gone has to be missing from two reports of its own product.
func TestFileMissingOfOneProduct(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		code := func(files ...string) []byte {
			r := run{Tool: "multi", Files: targets(files...), Results: []result{xss}}
			if slices.Contains(files, "db.go") {
				r.Results = append(r.Results, sqli)
			}
			return sarifOf(t, r)
		}
		other := sarifOf(t, run{Tool: "multi", Files: targets("env")})
		upload(t, s, "main", code("db.go", "web.go"))
		upload(t, s, "main", other, "product", "secrets")
		wantCounts(t, "without db.go", upload(t, s, "main", code("web.go", "new.go")), [6]int32{0, 0, 1, 0, 0, 0})
		wantProductStates(t, s, "once missing", "sast unresolved", "sast unresolved")
		upload(t, s, "main", other, "product", "secrets")
		upload(t, s, "main", code("web.go", "newer.go"))
		if got := productStates(t, s); !slices.Contains(got, "sast removed") {
			t.Errorf("twice missing: %q", got)
		}
	})
}

// TestToolOfSeveralProducts: a report without a product, of a tool whose rules declare theirs, replaces all findings of
// the tool.
func TestToolOfSeveralProducts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload(t, s, "main", []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"Trivy","rules":[
			{"id":"CVE-1","properties":{"tags":["vulnerability"]}},{"id":"aws-key","properties":{"tags":["secret"]}}]}},
			"results":[{"ruleId":"CVE-1","message":{"text":"m"}},{"ruleId":"aws-key","message":{"text":"m"}}]}]}`))
		wantProductStates(t, s, "first", "sca unresolved", "secrets unresolved")
		empty := sarifOf(t, run{Tool: "Trivy"})
		upload(t, s, "main", empty, "product", "secrets")
		wantProductStates(t, s, "no secrets", "sca unresolved", "secrets fixed")
		upload(t, s, "main", empty)
		wantProductStates(t, s, "nothing", "sca fixed", "secrets fixed")
	})
}
