package formats

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

var wide = jsonstream.Limits{MaxBytes: 1 << 30, MaxDepth: 256, MaxValues: 20_000_000, MaxValueBytes: 16 << 20, MaxTokenBytes: 16 << 20}

// notRecognised has a small body of each kind, and what the error has to say.
var notRecognised = []struct{ body, want string }{
	// Hints by members and elements.
	{`[{"version":"2.1.0","runs":[]}]`, "a list of SARIF reports"},
	{`{"report":1,"sarif":"H4sI"}`, "a SARIF report within JSON"},
	{`{"version":"v2","id":"1","status":"success","analysisVulnerabilities":[]}`, "Horusec JSON: run horusec with -o sarif"},
	{`{"kics_version":"v1.7","queries":[]}`, "KICS JSON: run kics scan with --report-formats sarif"},
	{`{"files_scanned":2,"queries":[{"query_name":"q","files":[{"file_name":"a.tf"}]}]}`, "KICS JSON"},
	{`{"vulnerabilities":[],"ok":true,"dependencyCount":4,"packageManager":"npm"}`, "Snyk JSON: run snyk test with --sarif"},
	{`[{"vulnerabilities":[],"packageManager":"npm"},{"vulnerabilities":[],"packageManager":"pip"}]`, "Snyk JSON"},
	{`{"infrastructureAsCodeIssues":[],"ok":true}`, "Snyk JSON: run snyk iac test with --sarif"},
	{"{\"template-id\":\"a\",\"matched-at\":\"http://x\"}\n{\"template-id\":\"b\",\"matched-at\":\"http://x\"}\n", "Nuclei JSON lines: run nuclei with -sarif-export"},
	{`[{"template-id":"a","matched-at":"http://x"}]`, "Nuclei JSON: run nuclei"},
	{`{"results":[{"rule_id":"AVD-1","long_id":"a","rule_provider":"aws"}]}`, "tfsec JSON: run tfsec with --format sarif"},
	{`{"results":{"violations":[],"skipped_violations":[],"scan_summary":{}}}`, "Terrascan JSON: run terrascan scan with -o sarif"},
	{`{"reportSchema":"1.1","scanInfo":{},"dependencies":[]}`, "Dependency-Check JSON: run dependency-check with --format SARIF"},
	{`<?xml version="1.0"?><analysis xmlns="https://jeremylong.github.io/DependencyCheck/dependency-check.4.0.xsd"><scanInfo/></analysis>`, "Dependency-Check XML"},
	{`{"Golang errors":{},"Issues":[],"Stats":{},"GosecVersion":"dev"}`, "gosec JSON: run gosec with -fmt sarif"},
	{`{"Issues":[{"FromLinter":"errcheck","Text":"x"}],"Report":{}}`, "golangci-lint JSON"},
	{`[{"severity":"error","type":"TaintedHtml","taint_trace":[]}]`, "Psalm JSON: run psalm with --report=report.sarif"},
	{`[{"severity":"error","shortcode":4,"snippet":"x"}]`, "Psalm JSON"},
	{`{"metadata":{"rubocop_version":"1.6"},"files":[],"summary":{}}`, "RuboCop JSON: run rubocop with --format sarif"},
	{`[{"cell":null,"code":"F401","filename":"a.py","message":"m","noqa_row":1}]`, "Ruff JSON: run ruff check with --output-format sarif"},
	{`[{"code":"DL3008","column":1,"file":"Dockerfile","level":"warning","line":3,"message":"Pin"}]`, "Hadolint JSON: run hadolint with --format sarif"},
	{`[{"type":"convention","module":"a","path":"a.py","symbol":"x","message":"m","message-id":"C0114"}]`, "Pylint JSON"},
	{`{"report_meta":{},"scanned_packages":{},"affected_packages":{},"vulnerabilities":[]}`, "Safety JSON"},
	{`{"artifacts":[],"artifactRelationships":[],"source":{},"descriptor":{"name":"syft"}}`, "syft JSON: write an SBOM with syft -o cyclonedx-json"},
	{`{"sbom":{"spdxVersion":"SPDX-2.3","packages":[]}}`, "as the API of GitHub writes it: upload the SBOM itself"},
	{`{"@context":"https://spdx.org/rdf/3.0.1/spdx-context.jsonld","@graph":[]}`, "SPDX 3: write SPDX 2.3 or CycloneDX"},
	{`{"results":[]}`, "such as format=osv-scanner-json"},
	{`{"findings":[]}`, "names no tool: say which one wrote it"},
	{`{"errors":[],"mobsfscan_version":"0.3","results":{}}`, "mobsfscan JSON: run mobsfscan with --sarif"},
	{`<BugCollection version="4.8"><BugInstance type="X"/></BugCollection>`, "SpotBugs XML: run spotbugs with -sarif"},
	{`<pmd xmlns="http://pmd.sourceforge.net/report/2.0.0"><file name="A"/></pmd>`, "PMD XML: run pmd check with --format sarif"},
	{`<checkstyle version="8"><file name="a"/></checkstyle>`, "Checkstyle XML"},
	{`{"scanID":"1","totalCount":1,"results":[{"type":"sast","similarityId":"2"}]}`, "Checkmarx JSON: run cx scan create with --report-format sarif"},
	{"\xEF\xBB\xBF<CxXMLResults InitiatorName=\"a\"><Query/></CxXMLResults>", "Checkmarx XML"},
	{`<?xml version="1.0" ?><NessusClientData_v2><Policy/></NessusClientData_v2>`, "a Nessus report"},
	{`<?xml version="1.0"?><!DOCTYPE issues [<!ELEMENT issues (issue*)>]><issues burpVersion="2"><issue><serialNumber>1</serialNumber></issue></issues>`, "Burp XML"},
	{`<FVDL xmlns="xmlns://www.fortifysoftware.com/schema/fvdl"/>`, "Fortify FVDL"},
	{`<detailedreport xmlns="https://www.veracode.com/schema/reports/export/1.0"/>`, "Veracode XML"},
	{`{"scan_id":"1","findings":[{"title":"a","issue_type_id":"x"}]}`, "a Veracode pipeline scan"},
	{`<pmd-cpd><duplication/></pmd-cpd>`, "PMD CPD XML"},
	{`<testsuites><testsuite/></testsuites>`, "JUnit XML"},
	{`<testsuite name="x"/>`, "JUnit XML"},
	{`[{"type":"issue","check_name":"a","fingerprint":"f","location":{"path":"a.rb","lines":{"begin":1}}}]`, "GitLab code quality"},
	{`{"results":[{"id":"sha256:1","vulnerabilityDistribution":{}}]}`, "twistcli JSON (Prisma Cloud)"},
	{`{"results":[{"id":"sha256:1","complianceDistribution":{}}]}`, "twistcli JSON (Prisma Cloud)"},
	{`{"imageDigest":"sha256:1","vulnerabilities":[{"vuln":"CVE-1","package":"a"}]}`, "Anchore JSON"},
	{`{"manifest_hash":"sha256:1","packages":{},"vulnerabilities":{}}`, "Clair JSON"},
	{`{"LayerCount":3,"Vulnerabilities":{}}`, "Clair JSON"},
	{`{"Controls":[{"id":"1","tests":[]}],"Totals":{}}`, "kube-bench JSON"},
	{`[{"finding_info":{"uid":"x"},"class_uid":2004}]`, "OCSF JSON, as Prowler writes it"},
	{"{\"finding_info\":{},\"class_uid\":2004}\n{\"finding_info\":{},\"class_uid\":2004}", "OCSF JSON lines"},
	{`{"Findings":[{"SchemaVersion":"2018-10-08","ProductArn":"arn"}]}`, "AWS Security Hub"},
	{`[{"SchemaVersion":"2018-10-08","ProductArn":"arn"}]`, "AWS Security Hub"},
	{`{"app_name":"a","code_analysis":{}}`, "MobSF JSON"},
	{`{"totals":{"errors":0,"file_errors":1},"files":{}}`, "PHPStan JSON"},
	{`{"paging":{},"issues":[{"key":"a","component":"b"}]}`, "an answer of the SonarQube API"},
	{`[{"number":1,"most_recent_instance":{}}]`, "GitHub's code scanning API"},
	{`{"name":"x","lockfileVersion":3,"packages":{}}`, "a package-lock.json: upload the report of npm audit --json"},
	{`{"content-hash":"x","packages":[]}`, "a composer.lock"},
	{`{"name":"x","scripts":{},"devDependencies":{}}`, "a package.json"},
	{`{"name":"x","version":"1","dependencies":{}}`, "a package.json"},
	{`{"message":"Bad credentials","documentation_url":"https://x"}`, "the error of an API"},
	{`{"error":{"message":"no","code":7}}`, "the error of an API"},

	// What no hint knows.
	{`[]`, "with the parameter format, such as format=eslint-json"},
	{`{}`, "an empty object names no tool"},
	{`[1,2]`, "it is a list with other values than objects"},
	{`[{"a":1,"b":2}]`, "it is a list with a, b"},
	{`{"foo":1,"bar":{}}`, "it is an object with the members foo, bar; docs/scanners.md lists the known formats"},
	{"{\"a\":1}\n{\"a\":2}\n", "these are JSON lines with the members a"},
	{`<svg xmlns="http://www.w3.org/2000/svg"/>`, "XML with the root element svg"},
	{`"text"`, "a JSON value and no document"},
	{`7`, "a JSON value and no document"},

	// No JSON and no XML.
	{"", "the file is empty"},
	{" \n\t\n", "the report has only white space"},
	{"<!DOCTYPE html>\n<html lang=en><head><title>Sign in</title>", "an HTML page, perhaps of a login or a proxy"},
	{"<!-- x -->\n<HTML><body>", "an HTML page"},
	{"--------------------------d74496d66958873e\r\nContent-Disposition: form-data; name=\"sarif\"; filename=\"r.sarif\"\r\n\r\n{}", "this is multipart: send the file as the body (curl --data-binary @report.sarif, not -F)"},
	{"sarif=%7B%22version%22%3A", "this is a form"},
	{"project=a&ref=main&report={", "this is a form"},
	{"report={\"version\"", "this is a form"},
	{"@report.sarif", "this is the name of a file"},
	{"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "an HTTP response with its headers"},
	{"File,Line,Column,DefaultLevel,Level,Category,Name,Warning\n", "Flawfinder CSV: run flawfinder with --sarif"},
	{"Rule;File;Line\nA;b.c;7\n", "this is CSV"},
	{strings.Repeat("H4sIAAAAAAAA/6tWKkstKs7Mz1Oyqq4F", 3) + "AA==\n", "this is base64"},
	{"---\nrules:\n", "this is YAML"},
	{"version: 2.1.0\nruns:\n- tool: x\n", "this is YAML"},
	{"2024-05-01 10:00 INFO scan started\n", "this is a text, and neither JSON nor XML"},
	{"Traceback (most recent call last):\n", "this is a text"},
	{"PK\x03\x04\x14\x00report.sarif", "a ZIP archive"},
	{"PK\x03\x04\x14\x00audit.fvdl", "a Fortify FPR"},
	{"BZh91AY", "compressed with bzip2: unpack it"},
	{"\xFD7zXZ\x00\x00", "compressed with xz"},
	{"\x28\xB5\x2F\xFD\x04", "compressed with zstd"},
	{"7z\xBC\xAF\x27\x1C\x00", "a 7z archive"},
	{"Rar!\x1A\x07\x00", "a RAR archive"},
	{"report.sarif" + strings.Repeat("\x00", 245) + "ustar\x0000", "a tar archive"},
	{"%PDF-1.7\n", "a PDF document"},
	{"\x7FELF\x02\x01\x01\x00", "a binary file: it has a NUL byte at byte 7"},

	// Reports that are cut off.
	{`{"version":"2.1.0","runs":[{"tool"`, "the file ends in the middle of a value"},
	{`<OWASPZAPRepo`, "the file ends before its root element does"},
}

func noMappings() ([]Format, error) { return nil, nil }

func TestWhatIsNotRecognised(t *testing.T) {
	used := map[string]bool{}
	for _, c := range notRecognised {
		_, err := Detect(context.Background(), strings.NewReader(c.body), wide, noMappings)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.body, err, c.want)
			continue
		}
		if isJSON := strings.IndexAny(c.body, "{[") == 0; !isJSON && strings.Contains(err.Error(), "mapping") {
			t.Errorf("%.60q: mappings read only JSON: %v", c.body, err)
		}
		var unknown *UnknownError
		if errors.As(err, &unknown) {
			for _, h := range hints {
				used[h.what] = used[h.what] || strings.HasPrefix(unknown.Text, "this is "+h.what+": ")
			}
		}
	}
	for _, h := range hints {
		if !used[h.what] {
			t.Errorf("no case has the hint %q", h.what)
		}
	}
}

// The errors must not take reports away from a format.
func TestHintsLeaveReportsAlone(t *testing.T) {
	for _, body := range []string{
		`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},` + "\n" + `"results":[]}]}`,
		"\xEF\xBB\xBF \n" + `{"version":"2.1.0","runs":[]}`, `{"message":"x","runs":[]}`, `[{"filePath":"/a.js","messages":[]}]`,
	} {
		if _, err := Detect(context.Background(), strings.NewReader(body), wide, noMappings); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}
