package sarif_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// FuzzRead checks for any bytes: no panic, a typed error or a report with every result accounted for, and texts that
// can be stored.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		driver("t", `{"ruleId":"r","message":{"text":"a {0} [b](1)","arguments":["x"]},"relatedLocations":[{"id":1}]}`),
		driver("gitleaks", leaky("key=abc123", "found abc123", `,"partialFingerprints":{"commitSha":"`+commit+`"}`)),
		driver("trivy", `{"ruleId":"CVE-2024-12345","message":{"text":"Package: a\nInstalled Version: 1"},"properties":{"purl":"pkg:npm/a@1"}}`),
		located(`{"uri":"../x","uriBaseId":"A"}`, `"originalUriBaseIds":{"A":{"uri":"file:///c:/x","uriBaseId":"A"}},"artifacts":[{"location":{"uri":"x"}}]`),
		severalAt("pmd", at("/src/a.go", 1), at("../b.go", 2), `{"logicalLocations":[{"index":0}]}`),
		run(`"tool":{"driver":{"name":"t","rules":[{"id":"r","relationships":[{"target":{"id":"79","toolComponent":{"index":0}}}]}]}},"results":null,"taxonomies":[{"name":"CWE","taxa":[{"id":"79"}]}]`),
		run(`"threadFlowLocations":[{"kinds":["sink"],"location":{"physicalLocation":{"artifactLocation":{"uri":"a"}}}}],"tool":{"driver":{"name":"t"}},"results":[
			{"ruleId":"hardcoded-key","message":{"text":"'k3yk3y'"},"taxa":[{"index":0,"toolComponent":{"name":"OWASP"}}],"codeFlows":[{"threadFlows":[{"locations":[{"index":0},7]}]}],
			"fixes":[{"artifactChanges":[{"replacements":[{"insertedContent":{"text":"x"}}]}]}],"suppressions":[{"properties":{"author":"kim"}}],
			"properties":{"cvss":{"nvd":{"V3Vector":"CVSS:3.1/AV:N"}},"cwe":[{"id":79}],"owasp":{"2021":"A1"},"package":{"name":"a"}}}]`),
		"\xEF\xBB\xBF{\"version\":\"2.1.0\",\"runs\":[7,{\"results\":{}}]}", "{", "[]", "", "\xFF\xFE",
	} {
		f.Add([]byte(seed))
	}
	limits := sarif.Limits{MaxBytes: 1 << 20, MaxResultBytes: 4 << 10, MaxTokenBytes: 2 << 10, MaxMetadataBytes: 16 << 10, MaxRuns: 5, MaxRules: 20, MaxResults: 200}
	f.Fuzz(func(t *testing.T, doc []byte) {
		report, err := sarif.Open(context.Background(), bytes.NewReader(doc), limits)
		if err != nil {
			var syntax *jsonstream.SyntaxError
			var format *sarif.FormatError
			var limit *jsonstream.LimitError
			if !errors.As(err, &syntax) && !errors.As(err, &format) && !errors.As(err, &limit) {
				t.Fatalf("untyped error %v", err)
			}
			if syntax != nil && (syntax.Line < 1 || syntax.Column < 1 || syntax.Offset < 0 || syntax.Offset > int64(len(doc))) {
				t.Fatalf("place of %+v in %d bytes", syntax, len(doc))
			}
			return
		}
		o := collect(t, report)
		for _, r := range o.results {
			checkResult(t, report, r)
		}
		for _, s := range o.skips {
			if s.Reason == "" || !utf8.ValidString(s.Reason+s.RuleID+s.Path) {
				t.Fatalf("skip %+v", s)
			}
		}
	})
}

func checkResult(t *testing.T, report *sarif.Report, r *sarif.Result) {
	t.Helper()
	texts := strings.Join([]string{
		r.RuleID, r.Message, r.Path, r.Logical, r.Snippet, r.MatchBasedID, r.ToolFingerprint, r.SuppressionReason, r.HistoricalCommit,
		r.Rule.ID, r.Rule.Name, r.Rule.Message, r.Rule.Help, r.Rule.HelpURI, r.Rule.Category, strings.Join(r.Rule.Tags, " "),
		strings.Join(r.Rule.CWENames, " "), strings.Join(r.Rule.OWASPNames, " "), report.Runs[r.Run].Tool.Name, report.Runs[r.Run].Tool.Slug,
		fmt.Sprint(r.CWENames, r.OWASPNames, r.Flows, r.Related, r.Fixes, r.SuppressionKind, r.SuppressionAuthor, r.Logical),
	}, " ")
	if r.Package != nil {
		texts += r.Package.Name + r.Package.Version + r.Package.FixedVersion
	}
	switch {
	case !utf8.ValidString(texts) || strings.Contains(texts, "\x00"):
		t.Fatalf("a text that cannot be stored: %q", texts)
	case r.Message == "" || r.RuleID == "":
		t.Fatalf("result %+v", r)
	case r.Line < 1 || r.Column < 1 || r.EndLine < r.Line || r.EndColumn < 1:
		t.Fatalf("region of %+v", r)
	case r.Severity != "low" && r.Severity != "medium" && r.Severity != "high" && r.Severity != "critical":
		t.Fatalf("severity %q", r.Severity)
	}
}
