package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const osvFixtures = "../../services/supplychain/osv/testdata"

// zipped writes a zip file with the fixtures, copied several times under different ids.
func zipped(t *testing.T, copies int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "all.zip")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	raw, err := os.ReadFile(filepath.Join(osvFixtures, "MAL-2026-1001.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range copies {
		entry, err := archive.Create(fmt.Sprintf("npm/MAL-2027-%d.json", i))
		if err == nil {
			_, err = entry.Write([]byte(strings.Replace(string(raw), "MAL-2026-1001", fmt.Sprintf("MAL-2027-%d", i), 1)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAdvisories(t *testing.T) {
	client := startServer(t, t.TempDir())
	if got := palisade(t, `{"version":"2.1.0","runs":[]}`, client, "upload", "-", "--project", "acme/web", "--ref", "main", "--wait", "1m"); got.status != exitOK {
		t.Fatal(got.err)
	}
	expect := func(status int, args ...string) outcome {
		t.Helper()
		got := palisade(t, "", client, append([]string{"advisories"}, args...)...)
		if got.status != status {
			t.Fatalf("%v: status %d: %s", args, got.status, got.err)
		}
		return got
	}
	wantParts(t, expect(exitOK, "check", "npm", "tinycolour-utils", "1.0.0").out, "npm tinycolour-utils 1.0.0 may be installed.")
	wantParts(t, expect(exitOK, "import", osvFixtures, "--malicious-only").out, "5 files: created 4, updated 0, unchanged 0, skipped 0, left out 1, unreadable 0")
	wantParts(t, expect(exitOK, "import", osvFixtures).out, "created 1, updated 0, unchanged 4")
	wantParts(t, expect(exitOK, "import", zipped(t, 1100)).out, "1100 files: created 1100,")
	wantParts(t, expect(exitOK, "import", zipped(t, 3)).out, "unchanged 3,")
	wantParts(t, expect(exitNo, "check", "PyPI", "Requests.OAuthlib_Pro", "2.1").out, "is malicious: it is blocked.", "MAL-2026-1002", "blocks")
	wantParts(t, expect(exitOK, "check", "npm", "fastpad", "1.0.0").out, "may be installed.", "MAL-2026-1003", "withdrawn")
	wantParts(t, expect(exitOK, "list", "--ecosystem", "pypi").out, "PYSEC-2026-77", "numpy-fastmath", "pypi requests-oauthlib-pro")
	if lines := strings.Count(expect(exitMore, "list", "--limit", "700").out, "\n"); lines != 701 {
		t.Errorf("%d lines, want 700 and a title", lines)
	}
	if got := expect(exitOK, "list", "--ecosystem", "gem", "-o", "json").out; got != "[]\n" {
		t.Errorf("an empty list: %s", got)
	}

	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": "{", "b.json": "null", "c.json": `{"id":"X-1"}`, "d.txt": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := expect(exitError, "import", dir)
	wantParts(t, got.out, "3 files: created 0, updated 0, unchanged 0, skipped 1, left out 0, unreadable 2")
	wantParts(t, got.err, "a.json: is not a JSON object", "b.json: is not a JSON object", "skipped c.json: modified must be a time")
	wantParts(t, expect(exitError, "import", t.TempDir()).err, "no regular .json files")
	wantParts(t, expect(exitError, "import", filepath.Join(dir, "d.txt")).err, "neither a directory, a zip file")
	wantParts(t, expect(exitError, "import", filepath.Join(dir, "missing")).err, "missing", "no such file")
	wantParts(t, expect(exitError, "check", "debian", "bash", "5").err, "ecosystem must be one of")
	wantParts(t, expect(exitError, "check", "npm", "bash").err, "want an ecosystem, a package and a version")
	wantParts(t, expect(exitError, "list", "--limit", "0").err, "--limit")
	for _, command := range []string{"import", "list", "check"} {
		wantParts(t, expect(exitOK, command, "--help").out, "Examples:", "palisade advisories "+command)
	}
}

// feedScan has a finding about CVE-2021-44906 in a lockfile.
const feedScan = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"osv-scanner","rules":[{"id":"CVE-2021-44906"}]}},"results":[
	{"ruleId":"CVE-2021-44906","message":{"text":"minimist is vulnerable"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"package-lock.json"},"region":{"startLine":3}}}]}]}]}`

func TestImportExploits(t *testing.T) {
	client := startServer(t, t.TempDir())
	if got := palisade(t, feedScan, client, "upload", "-", "--project", "acme/web", "--ref", "main", "--wait", "1m"); got.status != exitOK {
		t.Fatal(got.err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	run := func(status int, file string) outcome {
		t.Helper()
		got := palisade(t, "", client, "advisories", "import", file)
		if got.status != status {
			t.Fatalf("%s: status %d: %s %s", file, got.status, got.out, got.err)
		}
		return got
	}
	const day = "#model_version:v2025.03.14,score_date:2026-11-25T00:00:00+0000\ncve,epss,percentile\n"
	var many strings.Builder
	many.WriteString(day)
	for i := range predictionsAtOnce + 1 {
		fmt.Fprintf(&many, "CVE-2020-%d,0.00042,0.1\r\n", 10_000+i)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write([]byte(many.String())); err != nil || writer.Close() != nil {
		t.Fatal(err)
	}
	wantParts(t, run(exitOK, write("many.csv.gz", packed.String())).out, "5001 vulnerabilities: created 5001, updated 0, unchanged 0")
	one := write("one.csv", day+"CVE-2021-44906,0.62,0.98\n")
	wantParts(t, run(exitOK, one).out, "1 vulnerabilities: created 1, updated 0, unchanged 0")
	wantParts(t, run(exitOK, one).out, "created 0, updated 0, unchanged 1")
	catalogue := `{"title":"CISA Catalog","count":1,"vulnerabilities":[
		{"cveID":"CVE-2021-44906","vendorProject":"acme","dateAdded":"2026-05-04","dueDate":"2026-05-25","knownRansomwareCampaignUse":"Known"}]}`
	wantParts(t, run(exitOK, write("kev.json", "\xef\xbb\xbf"+catalogue)).out, "created 0, updated 1, unchanged 0")
	for name, c := range map[string]struct{ text, want string }{
		"date.csv":    {"#model_version:v1,score_date:soon\ncve,epss,percentile\n", `line 1, column 30: score_date must be a time`},
		"plain.csv":   {"cve,epss,percentile\nCVE-2021-44906,0.1,0.1\n", "line 1: want a comment"},
		"header.csv":  {"#model_version:v1,score_date:2026-11-25\ncve,epss\n", "line 2: column percentile is missing"},
		"cve.csv":     {day + "CVE-2021-44906,0.1,0.1\nGHSA-1,0.1,0.1\n", `line 4, column cve: want an identifier such as CVE-2021-44228, got "GHSA-1"`},
		"score.csv":   {day + "CVE-2021-44906,NaN,0.1\n", `line 3, column epss: want a number from 0 to 1, got "NaN"`},
		"short.csv":   {day + "CVE-2021-44906,0.1\n", "line 3: column percentile is missing"},
		"long.csv":    {day + strings.Repeat("x", maxFeedLine+1), "line 3: "},
		"far.csv":     {strings.Replace(day, "2026", "9999", 1) + "CVE-2021-44906,0.1,0.1\n", "exploitPredictions.scoredAt must be at most a day ahead"},
		"cut.csv.gz":  {packed.String()[:packed.Len()/2], "the file is cut off"},
		"cut.json":    {strings.TrimSuffix(catalogue, "}]}"), "line 2, column"},
		"brace.json":  {strings.TrimSuffix(catalogue, "}"), "the file is cut off"},
		"twice.json":  {strings.TrimSuffix(catalogue, "}") + `,"vulnerabilities":[garbage`, "vulnerabilities is there twice"},
		"after.json":  {catalogue + "{}", "want the end of the file"},
		"tail.json":   {catalogue + "garbage", "invalid character"},
		"empty.json":  {`{"vulnerabilities":[]}`, "no entries"},
		"none.json":   {`{"title":"x"}`, "it has no vulnerabilities"},
		"list.json":   {`{"vulnerabilities":{}}`, "must be a list"},
		"badcve.json": {"{\"vulnerabilities\":[\n{\"cveID\":\"X\"}]}", `line 2, column 14: cveID must be an identifier`},
		"added.json":  {`{"vulnerabilities":[{"cveID":"CVE-2021-44906","dateAdded":"soon"}]}`, "dateAdded of CVE-2021-44906 must be a date"},
		"other.txt":   {"no", "is neither a directory, a zip file, a CSV file"},
	} {
		wantParts(t, run(exitError, write(name, c.text)).err, name+": ", c.want)
	}
}
