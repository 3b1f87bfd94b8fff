package export_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/findingevent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/apitest"
)

const ndjson = `{"format":"EXPORT_FORMAT_NDJSON","filter":{}}`

// load imports a file, and returns what it did.
func load(t testing.TB, s *apitest.Server, of apitest.Tenant, file string, want int, header ...string) string {
	t.Helper()
	return s.Body(t, of.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%s/findings/import", of.Slug), file, want, header...)
}

// TestRoundTrip: an export that is imported into an empty deployment is exported with the same bytes. Importing it
// again changes nothing.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		first := export(t, s, s.Tenant, s.Token, ndjson)
		empty := s.AddTenant(t, "empty")
		want := `{"projects":"2","rules":"7","scans":"6","findings":"14","existing":"0"}`
		if got := load(t, s, empty, first.text, http.StatusOK); got != want {
			t.Errorf("imported %s, want %s", got, want)
		}
		second := export(t, s, empty, empty.Token, ndjson)
		if first.text != second.text {
			t.Errorf("the files differ:\n%s", difference(first.text, second.text))
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, _ = io.WriteString(zip, first.text)
		_ = zip.Close()
		want = `{"projects":"0","rules":"0","scans":"0","findings":"0","existing":"14"}`
		if got := load(t, s, empty, packed.String(), http.StatusOK, "Content-Encoding", "gzip"); got != want {
			t.Errorf("imported again: %s, want %s", got, want)
		}
		if third := export(t, s, empty, empty.Token, ndjson); third.sha256 != first.sha256 {
			t.Error("a second import changed findings")
		}
		// The findings are listed, and their decisions are known.
		if got := s.Body(t, empty.Token, http.MethodGet, "/api/v1/deployments/empty/findings?status=ignored&triage_reasons=false_positive&dedup=true", "", http.StatusOK); !strings.Contains(got, "HYPERLINK") {
			t.Errorf("the imported decision is not listed: %s", got)
		}
	})
}

// TestArchivedProjects: an export for an import has the findings of archived projects. Other formats leave them out, as
// lists do.
func TestArchivedProjects(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		seed(t, s)
		all := export(t, s, s.Tenant, s.Token, ndjson)
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web", `{"archived":true}`, http.StatusOK)
		first := export(t, s, s.Tenant, s.Token, ndjson)
		if got, want := strings.Count(first.text, "\n"), strings.Count(all.text, "\n"); got != want || !strings.Contains(first.text, `"archivedAt":`) {
			t.Errorf("%d lines with an archived project, want %d", got, want)
		}
		if csv := export(t, s, s.Tenant, s.Token, `{}`); strings.Contains(csv.text, "acme/web") {
			t.Errorf("a table has the archived project: %s", csv.text)
		}
		only := export(t, s, s.Tenant, s.Token, `{"format":"EXPORT_FORMAT_NDJSON","filter":{"includeArchived":true}}`)
		if strings.Contains(only.text, `"name":"acme/api"`) || !strings.Contains(only.text, `"name":"acme/web"`) {
			t.Errorf("the export of archived projects: %s", only.text)
		}
		empty := s.AddTenant(t, "empty")
		load(t, s, empty, first.text, http.StatusOK)
		if second := export(t, s, empty, empty.Token, ndjson); first.text != second.text {
			t.Errorf("the files differ:\n%s", difference(first.text, second.text))
		}
	})
}

// difference is the first line that differs.
func difference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range left {
		if i >= len(right) || left[i] != right[i] {
			return fmt.Sprintf("line %d\n%.3000s\n%.3000s", i+1, left[i], append(right, "", "")[min(i, len(right))])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(left), len(right))
}

// TestInvalidImports: a file that is no complete export is refused, with the line and the reason.
func TestInvalidImports(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(code))
		good := export(t, s, s.Tenant, s.Token, ndjson).text
		lines := strings.SplitAfter(good, "\n")
		swap := func(old, new string) string { return strings.ReplaceAll(good, old, new) }
		empty := s.AddTenant(t, "empty")
		for name, c := range map[string]struct{ file, want string }{
			"nothing":            {"", "cut off"},
			"another file":       {`{"runs":[]}`, "line 1: it is no record of an export"},
			"no header":          {strings.Join(lines[1:], ""), "line 1: it is no export"},
			"a newer version":    {swap(`{"version":1}`, `{"version":2}`), "version 2 is not known"},
			"cut off":            {strings.Join(lines[:len(lines)-2], ""), "cut off"},
			"a lost finding":     {strings.Join(lines[:len(lines)-3], "") + lines[len(lines)-2], "should have 3 findings, it has 2"},
			"no rules":           {without(lines, `{"rule":`), "does not have its rule"},
			"no scans":           {without(lines, `{"scan":`), "does not have its scan"},
			"no projects":        {without(lines, `{"project":`), "does not have"},
			"a false status":     {swap(`"status":"open"`, `"status":"fixed"`), "status must be open"},
			"a false severity":   {swap(`"severity":"high"`, `"severity":"extreme"`), "severity must be one of"},
			"a false state":      {swap(`"state":"unresolved"`, `"state":"x"`), "state must be one of"},
			"a false ref":        {swap(`refs/heads/main`, `refs/heads/a..b`), "a ref"},
			"a false name":       {swap(`acme/web`, `acme//web`), "the name of a project"},
			"a script as URL":    {swap(`"name":"acme/web"`, `"name":"acme/web","url":"javascript:alert(1)"`), "line 2: url must be the URL"},
			"a false branch":     {swap(`"defaultBranch":"refs/heads/main"`, `"defaultBranch":"not a ref"`), "defaultBranch: a ref"},
			"a false host":       {swap(`SCM_TYPE_UNKNOWN`, `SCM_X`), "scmType must be one of SCM_TYPE_GITHUB"},
			"no creation":        {cut(good, `"createdAt":"[^"]*",?`), "createdAt must be a time"},
			"the year 1":         {change(good, `"startedAt":"\d{4}`, `"startedAt":"0001`), "startedAt must be a time"},
			"the year 9999":      {change(good, `"relevantSince":"\d{4}`, `"relevantSince":"9999`), "relevantSince must be a time"},
			"a false total":      {change(good, `"totalCount":\d+`, `"totalCount":-5`), "totalCount must be at least 0"},
			"a false line":       {change(good, `"line":7`, `"line":-5`), "content.location.line must be at least 0"},
			"a false kind":       {swap(`"kind":"created"`, `"kind":"bogus"`), "events[0].kind must be one of autotriaged"},
			"a false actor":      {swap(`"actorKind":"scan"`, `"actorKind":"x"`), "events[0].actorKind must be one of"},
			"a false reason":     {swap(`"state":"unresolved"`, `"state":"unresolved","triageReason":"x"`), "triageReason must be one of false_positive"},
			"a false exposure":   {swap(`"state":"unresolved"`, `"state":"unresolved","exposure":"x"`), "exposure must be one of"},
			"a false mode":       {swap(`"state":"unresolved"`, `"state":"unresolved","policyMode":"x"`), "policyMode must be one of"},
			"a false validity":   {swap(`"state":"unresolved"`, `"state":"unresolved","validationState":"x"`), "validationState must be one of"},
			"a long comment":     {swap(`"state":"unresolved"`, `"state":"unresolved","triageComment":"`+strings.Repeat("x", 200_000)+`"`), "triageComment must have"},
			"a long print":       {change(good, `"fingerprint":"`, `"fingerprint":"`+strings.Repeat("x", 5000)), "fingerprint must have"},
			"a long rule":        {swap(`"rule":{"tool":"acme-scan","name":"`, `"rule":{"tool":"acme-scan","name":"`+strings.Repeat("x", 20_000)), "name must have"},
			"an empty match":     {change(good, `("state":"unresolved")`, `$1,"matches":[{"scan":"1","at":"2026-01-01T00:00:00Z"}]`), "matches[0].content is missing"},
			"a match of none":    {change(good, `("state":"unresolved")`, `$1,"matches":[{"scan":"7","content":{},"at":"2026-01-01T00:00:00Z"}]`), "does not have its scan 7"},
			"merged into itself": {change(good, `"ref":"(refs/heads/main)","tool":"acme-scan",("fingerprint":"[^"]*")`, `"ref":"$1","tool":"acme-scan",$2,"mergedInto":{"ref":"$1",$2}`), "mergedInto names the finding itself"},
			"a zero byte":        {swap(`SQL from input`, `SQL\u0000`), "zero byte"},
			"an unknown field":   {swap(`"fingerprint"`, `"finger"`), "no record"},
			"after the end":      {good + lines[0], "after the end"},
			"not gzip":           {good, "gzip"},
			"a cut gzip header":  {"\x1f\x8b", "gzip"},
		} {
			var header []string
			if strings.Contains(name, "gzip") {
				header = []string{"Content-Encoding", "gzip"}
			}
			if got := load(t, s, empty, c.file, http.StatusBadRequest, header...); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s, want %s", name, got, c.want)
			}
		}
		if n := s.Store.Reader.Project.Query().CountX(s.System(t)); n != 1 {
			t.Errorf("%d projects after invalid imports, want 1", n)
		}
	})
}

// change replaces what a pattern matches.
func change(text, pattern, with string) string {
	return regexp.MustCompile(pattern).ReplaceAllString(text, with)
}

func cut(text, pattern string) string { return change(text, pattern, "") }

// without are the lines that do not begin so.
func without(lines []string, begin string) string {
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, begin) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestImportedNames: names are as long as callers may make them, in characters.
func TestImportedNames(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		name, tag := "acme/"+strings.Repeat("世", 250), strings.Repeat("é", 100)
		s.Upload(t, name, "main", []byte(code))
		s.Body(t, s.Token, http.MethodPut, "/api/v1/deployments/"+s.Slug+"/projects/"+url.PathEscape(name)+"/tags", `{"tags":["`+tag+`"]}`, http.StatusOK)
		file := export(t, s, s.Tenant, s.Token, ndjson).text
		empty := s.AddTenant(t, "empty")
		load(t, s, empty, file, http.StatusOK)
		if again := export(t, s, empty, empty.Token, ndjson).text; again != file {
			t.Error(difference(file, again))
		}
	})
}

// TestScanAfterImport: a scan that reports what was imported changes nothing.
func TestScanAfterImport(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		reports := [][]byte{[]byte(code), vulnerable("CVE-2026-1 lodash 4.17.4")}
		empty := s.AddTenant(t, "empty")
		upload := func(project string, report []byte) {
			query := url.Values{"project": {project}, "ref": {"main"}}
			s.Body(t, empty.Token, http.MethodPost, "/api/v1/deployments/empty/reports?"+query.Encode(), string(report), http.StatusOK)
		}
		for _, report := range reports {
			s.Upload(t, "acme/web", "main", report)
		}
		upload("acme/other", []byte(secrets)) // ids of rules differ
		load(t, s, empty, export(t, s, s.Tenant, s.Token, ndjson).text, http.StatusOK)
		for _, report := range reports {
			upload("acme/web", report)
		}
		if n := s.Store.Reader.FindingEvent.Query().Where(findingevent.DeploymentID(empty.DeploymentID), findingevent.Kind("updated")).CountX(s.System(t)); n != 0 {
			t.Errorf("%d findings were updated", n)
		}
	})
}

// TestImportedTracker: a file with decisions of a tracker, whose ticket was closed, is imported.
func TestImportedTracker(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", reported("sql", "a.go"))
		ignore(t, s, s.Token, "sast", latestOn(t, s, "main"), "false_positive")
		file := export(t, s, s.Tenant, s.Token, ndjson).text
		load(t, s, s.AddTenant(t, "empty"), strings.ReplaceAll(file, `"actorKind":"token"`, `"actorKind":"tracker"`), http.StatusOK)
	})
}

// TestImportByGRPC sends chunks over gRPC, and needs an administrator.
func TestImportByGRPC(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(code))
		file := export(t, s, s.Tenant, s.Token, ndjson).text
		empty := s.AddTenant(t, "empty")
		client := findingsv1.NewExportsServiceClient(s.Conn)
		send := func(token, slug string) (*findingsv1.ImportFindingsResponse, error) {
			stream, err := client.ImportFindings(s.Context(t, token))
			if err != nil {
				t.Fatal(err)
			}
			_ = stream.Send(&findingsv1.ImportFindingsRequest{DeploymentSlug: slug, Target: &findingsv1.ImportFindingsTarget{}, Chunk: []byte(file[:100])})
			_ = stream.Send(&findingsv1.ImportFindingsRequest{Chunk: []byte(file[100:])})
			return stream.CloseAndRecv()
		}
		if _, err := send(s.Token, "empty"); err == nil || !strings.Contains(err.Error(), "deployment not found") {
			t.Errorf("into a foreign deployment: %v", err)
		}
		if _, err := send(s.AddUser(t, empty, "member@acme.test", "ORG_ROLE_MEMBER"), "empty"); err == nil || !strings.Contains(err.Error(), "ORG_ROLE_ADMIN") {
			t.Errorf("by a member: %v", err)
		}
		got, err := send(empty.Token, "empty")
		if err != nil || got.GetFindings() != 3 || got.GetScans() != 1 {
			t.Errorf("%v, %v", got, err)
		}
	})
}
