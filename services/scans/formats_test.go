package scans_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/dependency"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apitest"
)

// scanID matches the id of the scan in an answer.
var scanID = regexp.MustCompile(`"scan_id":\d+`)

// redacted matches the keyed hash of a secret; each server has its own key.
var redacted = regexp.MustCompile(`\[redacted [0-9a-f]{16}\]`)

// TestFormats imports a real report of each format (testdata/formats) and compares the answer and the stored findings
// with golden files. Importing the report again changes nothing.
func TestFormats(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no reports", err)
	}
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, file := range files {
			if strings.HasSuffix(file, ".golden") {
				continue
			}
			name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			t.Run(name, func(t *testing.T) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				answer := s.Upload(t, name, "main", raw)
				stored := storedFindings(t, s, name)
				apitest.Golden(t, "formats/"+name, scanID.ReplaceAllString(answer, `"scan_id":1`)+"\n"+stored)
				again := s.Upload(t, name, "main", raw)
				if created := regexp.MustCompile(`"(created|updated|reopened|fixed|removed)":[1-9]`).FindString(again); created != "" {
					t.Errorf("importing it again: %s", again)
				}
				if now := storedFindings(t, s, name); now != stored {
					t.Errorf("importing it again changed the findings:\n%s", now)
				}
			})
		}
	})
}

// storedFindings lists the findings of a project, one in a line.
func storedFindings(t *testing.T, s *apitest.Server, name string) string {
	t.Helper()
	ctx := s.System(t)
	db := s.Store.Reader
	p := db.Project.Query().Where(project.Name(name)).OnlyX(ctx)
	var lines []string
	for _, f := range db.Finding.Query().Where(finding.ProjectID(p.ID)).AllX(ctx) {
		lines = append(lines, line(t, f, db.Rule.Query().Where(rule.ID(f.RuleID)).OnlyX(ctx)))
	}
	for _, d := range db.Dependency.Query().Where(dependency.ProjectID(p.ID)).AllX(ctx) {
		var content storev1.DependencyContent
		if err := proto.Unmarshal(d.Content, &content); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("dependency %s: %s %s %s %s %s\n\trequires: %s\n", d.Lockfile, d.Ecosystem, d.Package, d.Version, d.Transitivity,
			content.GetLicenses(), strings.Join(content.GetChildren(), ", ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// triageOf describes the decision about a finding; empty if there is none.
func triageOf(f *ent.Finding) string {
	if f.TriageState == lifecycle.Untriaged && f.TriageComment == nil {
		return ""
	}
	text := f.TriageState
	for _, more := range []*string{f.TriageReason, f.TriageComment} {
		if more != nil {
			text += " " + *more
		}
	}
	return text
}

// line describes a finding by everything that a reader of a format determines.
func line(t *testing.T, f *ent.Finding, r *ent.Rule) string {
	t.Helper()
	content, err := blob.Decode(f.Content)
	if err != nil {
		t.Fatal(err)
	}
	text := &findingsv1.FindingRule{}
	if err := proto.Unmarshal(r.Content, text); err != nil {
		t.Fatal(err)
	}
	more := &findingsv1.FindingContext{}
	if err := proto.Unmarshal(content.GetContext(), more); err != nil {
		t.Fatal(err)
	}
	at := content.GetLocation()
	line := fmt.Sprintf("%s %s %s %s:%d:%d", f.IssueType, f.State, f.Severity, at.GetFilePath(), at.GetLine(), at.GetColumn())
	for _, fact := range []struct{ name, value string }{
		{"tool", f.Tool}, {"category", f.AnalysisCategory}, {"rule", r.Name}, {"cwe", strings.Join(text.GetCweNames(), ",")},
		{"owasp", strings.Join(text.GetOwaspNames(), ",")}, {"logical", content.GetLogicalLocation()},
		{"package", packageOf(content.GetFoundDependency())}, {"fixed", versions(content.GetFixRecommendations())},
		{"advisory", content.GetVulnerabilityIdentifier()}, {"use", useOf(f, content)}, {"fingerprint", content.GetToolFingerprint()},
		{"snippet", content.GetSnippet()}, {"suppressed", content.GetSuppressionReason()}, {"message", content.GetMessage()},
		{"confidence", unusual(text.GetConfidence())}, {"references", references(text)}, {"triage", triageOf(f)}, {"flow", numberOf(len(more.GetCodeFlows()))}, {"related", numberOf(len(more.GetRelatedLocations()))},
		{"fix", numberOf(len(more.GetFixes()))}, {"help", text.GetHelp()}, {"commit", content.GetHistoricalCommit()},
	} {
		if fact.value != "" {
			line += fmt.Sprintf("\n\t%s: %s", fact.name, strings.ReplaceAll(fact.value, "\n", "\n\t\t"))
		}
	}
	return redacted.ReplaceAllString(line, "[redacted]") + "\n"
}

// unusual is the confidence of a rule; empty for medium, which is the one of tools without confidences.
func unusual(confidence string) string {
	if confidence == vocabulary.ConfidenceMedium {
		return ""
	}
	return confidence
}

// references are the pages of a rule, unless they are only its help.
func references(rule *findingsv1.FindingRule) string {
	pages := strings.Join(rule.GetReferences(), " ")
	if pages == rule.GetHelpUri() {
		return ""
	}
	return pages
}

// numberOf is a number as text; empty for 0.
func numberOf(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func packageOf(d *findingsv1.FoundDependency) string {
	if d.GetPackage() == "" {
		return ""
	}
	return fmt.Sprintf("%s %s %s", d.GetEcosystem(), d.GetPackage(), d.GetVersion())
}

// useOf is how the project uses a dependency, if the report says so.
func useOf(f *ent.Finding, content *storev1.FindingContent) string {
	var words []string
	for _, word := range []string{value(f.Transitivity), value(f.Exposure), content.GetReachableCondition(), content.GetUsage().GetLocation().GetFilePath()} {
		if word != "" && word != "unknown" {
			words = append(words, word)
		}
	}
	if f.Malicious != nil && *f.Malicious {
		words = append(words, "malicious")
	}
	if content.GetLockfile() != "" {
		words = append(words, fmt.Sprintf("%s:%d", content.GetLockfile(), content.GetLockfileLine()))
	}
	return strings.Join(words, ", ")
}

func versions(fixes []*findingsv1.FixRecommendation) string {
	var list []string
	for _, fix := range fixes {
		list = append(list, fix.GetVersion())
	}
	return strings.Join(list, ", ")
}

// TestFormatOfAnEmptyReport: an empty list names no tool, so the caller has to. Then it is a report without results.
func TestFormatOfAnEmptyReport(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		report := `[{"filePath":"/a.js","messages":[{"ruleId":"no-eval","severity":2,"message":"eval can be harmful.","line":3,"column":5}]}]`
		s.Upload(t, "acme/web", "main", []byte(report))
		path := fmt.Sprintf("/api/v1/deployments/%s/reports?project=acme/web&ref=main", s.Slug)
		answer := s.Send(t, s.Token, http.MethodPost, path, strings.NewReader("[]"))
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "format=eslint-json") {
			t.Errorf("an empty list: %d %s", answer.Status, answer.Body)
		}
		if got := s.Upload(t, "acme/web", "main", []byte("[]"), "format", "eslint-json"); !strings.Contains(got, `"fixed":1`) {
			t.Errorf("an empty ESLint report: %s", got)
		}
	})
}

// TestFilesThatALinterDidNotScan: a report about some files, or with a file that could not be parsed, closes no finding
// in the others.
func TestFilesThatALinterDidNotScan(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		problem := `{"ruleId":"no-eval","severity":2,"message":"eval can be harmful.","line":3,"column":5}`
		broken := `{"ruleId":null,"fatal":true,"severity":2,"message":"Parsing error: Unexpected token","line":1,"column":1}`
		report := func(a, b string) []byte {
			return []byte(`[{"filePath":"src/a.js","messages":[` + a + `]},{"filePath":"src/b.js","messages":[` + b + `]}]`)
		}
		for _, step := range []struct {
			report []byte
			want   string
		}{
			{report(problem, problem), `"created":2,"updated":0,"unchanged":0,"reopened":0,"fixed":0`},
			{report(broken, ``), `"fixed":1`}, // b.js
			{report(problem, problem), `"reopened":1`},
			{[]byte(`[{"filePath":"src/a.js","messages":[]}]`), `"fixed":1`}, // b.js was not scanned
			{report(problem, ``), `"reopened":1,"fixed":1`},
		} {
			if got := s.Upload(t, "acme/web", "main", step.report); !strings.Contains(got, step.want) {
				t.Errorf("%s: %s, want %s", step.report, got, step.want)
			}
		}
	})
}
