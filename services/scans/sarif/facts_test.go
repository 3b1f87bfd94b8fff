package sarif_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/sarif"
)

// withRule is a report of one result whose rule and result have the given members.
func withRule(tool, ruleID, rule, result string) string {
	comma := func(members string) string {
		if members == "" {
			return ""
		}
		return "," + members
	}
	return run(fmt.Sprintf(`"tool":{"driver":{"name":%q,"rules":[{"id":%q%s}]}},"results":[{"ruleId":%q,"message":{"text":"m"}%s}]`,
		tool, ruleID, comma(rule), ruleID, comma(result)))
}

func bagOf(properties string) string { return `"properties":{` + properties + `}` }

func TestSeverityOfProperties(t *testing.T) {
	for _, c := range []struct{ rule, result, want string }{
		// Words, in all spellings, also where a number is expected.
		{bagOf(`"security-severity":"CRITICAL"`), ``, "critical"},
		{bagOf(`"security-severity":"9.8/10"`), ``, "critical"},
		{bagOf(`"security-severity":"7,5"`), ``, "high"},
		{bagOf(`"security-severity":"4.0 / 10.0"`), ``, "medium"},
		{bagOf(`"security-severity":"3.1 (Low)"`), ``, "low"},
		{bagOf(`"security-severity":"9.8/100"`), `"level":"note"`, "low"},
		{``, `"level":"critical"`, "critical"},
		{``, `"level":"High"`, "high"},
		{``, `"level":"fatal"`, "critical"},
		{``, `"level":"info"`, "low"},
		{``, `"level":"strange"`, "medium"},
		{`"defaultConfiguration":{"level":"critical"}`, ``, "critical"},
		{bagOf(`"Security_Severity":"High"`), ``, "high"},
		{``, bagOf(`"severity":"low","unscored":"true"`), "low"},
		{``, bagOf(`"severity":"BLOCKER"`), "critical"},
		{``, bagOf(`"severity":"MAJOR"`), "medium"},
		{``, bagOf(`"severity":"Minor"`), "low"},
		{``, bagOf(`"severity":"Moderate"`), "medium"},
		{``, bagOf(`"severity":"Important"`), "high"},
		{``, bagOf(`"severity":"Negligible"`), "low"},
		{``, bagOf(`"severity":"INFORMATIONAL"`), "low"},
		{``, bagOf(`"severity":"SEVERITY_VERY_HIGH"`), "critical"},
		{``, bagOf(`"severity":{"level":"high"}`), "high"},
		{``, bagOf(`"issue_severity":"HIGH"`), "high"},
		{``, bagOf(`"issueSeverity":["medium"]`), "medium"},
		{``, bagOf(`"priority":"P1"`), "critical"},
		{``, bagOf(`"Priority":"p4"`), "low"},
		{``, bagOf(`"securityRisk":"HIGH"`), "high"},
		{``, bagOf(`"riskdesc":"Low (Medium)"`), "low"},
		{``, bagOf(`"impact":"critical"`), "critical"},
		{bagOf(`"problem.severity":"recommendation"`), ``, "low"},
		{``, bagOf(`"metadata":{"severity":"HIGH"}`), "high"},
		{``, bagOf(`"vulnerability":{"id":"CVE-2020-11022","severity":"CRITICAL"}`), "critical"},
		// Scores and vectors win over words.
		{``, bagOf(`"severity":"low","cvss-score":7.5`), "high"},
		{``, bagOf(`"cvssScore":"9.8"`), "critical"},
		{``, bagOf(`"cvssV3":6.9`), "medium"},
		{``, bagOf(`"cvss_v3_score":"3.1"`), "low"},
		{``, bagOf(`"cvss":{"nvd":{"V2Score":10,"V3Score":5.3,"V3Vector":"x"}}`), "medium"},
		{``, bagOf(`"cvss":[{"version":"3.1","vector":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H","metrics":{"exploitabilityScore":3.9,"impactScore":5.9}}]`), "critical"},
		{``, bagOf(`"cvssV3":"CVSS:3.0/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N"`), "low"},
		{``, bagOf(`"cvss":"CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"`), "critical"},
		{``, bagOf(`"cvssVector":"AV:N/AC:L/Au:N/C:C/I:C/A:C"`), "high"},
		{bagOf(`"cvssv3_baseScore":6.9,"security-severity":6.9,"cvssv3_baseSeverity":"MEDIUM"`), `"level":"error"`, "medium"},
		{bagOf(`"cvssv2_score":9.3,"cvssv2_severity":"HIGH"`), `"level":"warning"`, "high"},
		// The result wins over its rule, both win over the level.
		{bagOf(`"security-severity":"9.1"`), bagOf(`"severity":"low"`), "low"},
		{bagOf(`"severity":"critical"`), `"level":"note"`, "critical"},
		{bagOf(`"tags":["security","CRITICAL"]`), `"level":"error"`, "critical"},
		{bagOf(`"tags":["severity:low"]`), `"level":"error"`, "low"},
		{``, bagOf(`"tags":["Severity/High"]`), "high"},
		// These say nothing.
		{bagOf(`"security-severity":"0.0"`), `"level":"error"`, "high"},
		{bagOf(`"security-severity":"unknown","severity":"N/A"`), `"level":"note"`, "low"},
		{bagOf(`"priority":3,"tags":["error","HIGH CONFIDENCE"]`), `"level":"error"`, "high"},
		{bagOf(`"impact":"An attacker can read high amounts of data, which is critical"`), `"level":"note"`, "low"},
		{bagOf(`"severity":{"a":{"b":{"c":{"d":{"e":1}}}}}`), `"level":"note"`, "low"},
		// Level none is a problem if the tool says how severe it is.
		{``, `"level":"none",` + bagOf(`"severity":"medium"`), "medium"},
		{bagOf(`"security-severity":"7.1"`), `"level":"none"`, "high"},
		{bagOf(`"severity":"high"`), `"level":"none"`, "skip"},
		{``, `"kind":"pass","level":"none",` + bagOf(`"severity":"high"`), "skip"},
		{``, `"kind":"informational","level":"none"`, "low"},
	} {
		o := read(t, withRule("t", "r", c.rule, c.result))
		got := "skip"
		if len(o.results) == 1 {
			got = o.results[0].Severity
		}
		if got != c.want {
			t.Errorf("rule {%s}, result {%s}: severity %s, want %s", c.rule, c.result, got, c.want)
		}
	}
}

func TestWeaknessesOfProperties(t *testing.T) {
	for _, c := range []struct{ id, rule, want string }{
		{"r", bagOf(`"cwe":79`), "CWE-79"},
		{"r", bagOf(`"CWE":"79, 80"`), "CWE-79 CWE-80"},
		{"r", bagOf(`"CWE":"79; 80;cwe-81"`), "CWE-79 CWE-80 CWE-81"},
		{"r", bagOf(`"cwe-id":["CWE-79: Cross-site Scripting","https://cwe.mitre.org/data/definitions/089.html"]`), "CWE-79: Cross-site Scripting CWE-89"},
		{"r", bagOf(`"cwes":[{"cwe_id":79,"name":"x"},{"id":"CWE-80"}]`), "CWE-79 CWE-80"},
		{"r", bagOf(`"cweid":{"id":22}`), "CWE-22"},
		{"r", bagOf(`"cwe_url":"https://cwe.mitre.org/data/definitions/22.html"`), "CWE-22"},
		{"r", bagOf(`"cweTop25Rank":3`), ""},
		{"r", bagOf(`"metadata":{"cwe":["CWE-22"]}`), "CWE-22"},
		{"r", bagOf(`"tags":["external/cwe/cwe-079","cwe:089","CWE_22","cwe"]`), "CWE-79 CWE-89 CWE-22"},
		{"CWE-89_sql-injection", ``, "CWE-89"},
		{"cwe/78", ``, "CWE-78"},
		{"r", `"help":{"text":"See CWE-502 (https://cwe.mitre.org/data/definitions/502.html)"}`, "CWE-502"},
		{"r", `"help":{"text":"Either CWE-1 or CWE-2"}`, ""},
		{"CWE-89x", bagOf(`"cwe":"CWE-1"`), "CWE-1"},
	} {
		o := read(t, withRule("t", c.id, c.rule, ""))
		if got := strings.Join(o.report.Runs[0].Rules()[0].CWENames, " "); got != c.want {
			t.Errorf("%s {%s}: CWEs %q, want %q", c.id, c.rule, got, c.want)
		}
	}
}

func TestOWASPOfProperties(t *testing.T) {
	for rule, want := range map[string]string{
		bagOf(`"owasp":"A03:2021 - Injection"`):                 "A03:2021 - Injection",
		bagOf(`"owasp-top10":["A1:2017-Injection"]`):            "A1:2017-Injection",
		bagOf(`"owaspTop10":{"2017":"A1","2021":"A03"}`):        "A1:2017 A03:2021",
		bagOf(`"owasp-mobile":"M5: Insufficient Cryptography"`): "M5: Insufficient Cryptography",
		bagOf(`"tags":["OWASP-A03:2021-Injection"]`):            "A03:2021-Injection",
		bagOf(`"tags":["owasp-a3","owasp"]`):                    "A3",
		bagOf(`"tags":["owasp-top10-2021-a3"]`):                 "A3:2021",
		bagOf(`"tags":["API1:2023 - Broken Authorization"]`):    "API1:2023 - Broken Authorization",
	} {
		o := read(t, withRule("t", "r", rule, ""))
		if got := strings.Join(o.report.Runs[0].Rules()[0].OWASPNames, " "); got != want {
			t.Errorf("{%s}: OWASP %q, want %q", rule, got, want)
		}
	}
}

// A result refers to taxa of the run by name, guid or index, or only by an id that is clear.
func TestTaxaOfResults(t *testing.T) {
	taxonomies := `"taxonomies":[{"name":"OWASP Top 10 2021","guid":"OO","taxa":[{"id":"A03"}]},
		{"name":"CWE","guid":"CC","taxa":[{"id":"20","name":"Improper Input Validation"},{"id":"CWE-79"}]}],`
	for taxa, want := range map[string]string{
		`{"id":"20","toolComponent":{"name":"CWE"}}`: "CWE-20: Improper Input Validation",
		`{"id":"20","toolComponent":{"name":"cwe"}}`: "CWE-20: Improper Input Validation",
		`{"id":"20","toolComponent":{"guid":"cc"}}`:  "CWE-20: Improper Input Validation",
		`{"id":"20","toolComponent":{"index":1}}`:    "CWE-20: Improper Input Validation",
		`{"index":1,"toolComponent":{"index":1}}`:    "CWE-79",
		`{"id":"CWE-22"}`:                            "CWE-22",
		`{"id":"7","toolComponent":{"guid":"SS"}}`:   "CWE-7",
		`{"id":"A03","toolComponent":{"guid":"OO"}}`: "A03:2021",
		`{"id":"7","toolComponent":{"name":"CERT"}}`: "",
		`{"id":"7"}`: "",
	} {
		o := read(t, run(taxonomies+`"tool":{"driver":{"name":"t","supportedTaxonomies":[{"name":"CWE","guid":"SS"}]}},
			"results":[{"ruleId":"r","message":{"text":"m"},"taxa":[`+taxa+`]}]`))
		r := only(t, o)
		if got := strings.Join(slices.Concat(r.CWENames, r.OWASPNames), " "); got != want {
			t.Errorf("%s: %q, want %q", taxa, got, want)
		}
	}
}

func TestPackagesOfProperties(t *testing.T) {
	lodash := sarif.Package{Name: "lodash", Version: "4.17.4", FixedVersion: "4.17.12, 5.0.0", Ecosystem: "npm", AdvisoryID: "CVE-2019-10744"}
	for _, c := range []struct {
		tool, id, rule, result string
		want                   sarif.Package
	}{
		{"Black Duck", "BDSA-2019-1001 (CVE-2019-10744)", ``, bagOf(`"component":"lodash","componentVersion":"4.17.4","componentOrigin":"npm","fixed_versions":["4.17.12","5.0.0"]`), lodash},
		{"docker scout", "CVE-2019-10744", bagOf(`"purls":["pkg:npm/lodash@4.17.4"],"fixed_version":"4.17.12 5.0.0"`), ``, lodash},
		{"Checkmarx SCA", "CVE-2019-10744", ``, bagOf(`"package":{"name":"lodash","version":"4.17.4","type":"npm"},"patchedVersions":"4.17.12 || 5.0.0"`), lodash},
		{"npm audit", "1065", ``, bagOf(`"module_name":"lodash","installedVersion":"4.17.4","packageManager":"npm","patched_versions":">=4.17.12, >=5.0.0","cves":["CVE-2019-10744"]`), lodash},
		{"Mend", "CVE-2019-10744", ``, bagOf(`"library":{"name":"lodash","version":"4.17.4","packageManager":"NPM"},"fixVersion":"4.17.12,5.0.0"`), lodash},
		{"t", "CVE-2019-10744", ``, bagOf(`"purl":"pkg:npm/lodash@4.17.4","fixedVersion":["4.17.12","5.0.0"]`), lodash},
		{"Snyk Open Source", "SNYK-JS-LODASH-450202", `"fullDescription":{"text":"(CVE-2019-10744) lodash@4.17.4"},"help":{"markdown":"* Package Manager: npm\n* Vulnerable module: lodash\n"}`,
			`"fixes":[{"description":{"text":"Upgrade to lodash@4.17.12"}}]`, sarif.Package{Name: "lodash", Version: "4.17.4", FixedVersion: "4.17.12", Ecosystem: "npm", AdvisoryID: "CVE-2019-10744"}},
		{"Xray", "CVE-2019-10744_lodash_4.17.4", ``, ``, sarif.Package{Name: "lodash", Version: "4.17.4", AdvisoryID: "CVE-2019-10744"}},
		{"osv-scanner", "CVE-2019-10744", `"help":{"markdown":"| Vulnerability ID | Package Name | Fixed Version |\n| --- | --- | --- |\n| CVE-2019-10744 | lodash | 4.17.12 |\n"}`, ``,
			sarif.Package{Name: "lodash", FixedVersion: "4.17.12", AdvisoryID: "CVE-2019-10744"}},
		{"govulncheck", "GO-2024-2687", bagOf(`"tags":["CVE-2023-45288"]`), `"message":{"text":"Your code depends on 1 vulnerable module (golang.org/x/net), but doesn't appear to call any of the vulnerable symbols."}`,
			sarif.Package{Name: "golang.org/x/net", Ecosystem: "gomod", AdvisoryID: "CVE-2023-45288"}},
		{"dependency-check", "Prototype pollution", ``, `"locations":[{"physicalLocation":{"artifactLocation":{"uri":"js/handlebars-1.0.0.js"}}}]`,
			sarif.Package{Name: "handlebars", Version: "1.0.0", Ecosystem: "npm"}},
		{"dependency-check", "CVE-2019-10744", ``, `"locations":[{"logicalLocations":[{"fullyQualifiedName":"lodash:4.17.4"}],"physicalLocation":{"artifactLocation":{"uri":"package-lock.json"}}}]`,
			sarif.Package{Name: "lodash", Version: "4.17.4", Ecosystem: "npm", AdvisoryID: "CVE-2019-10744"}},
		{"dependency-check", "CVE-2021-44228", ``, `"locations":[{"logicalLocations":[{"fullyQualifiedName":"app.jar: log4j-core-2.14.1.jar"}],"physicalLocation":{"artifactLocation":{"uri":"app.jar"}}}]`,
			sarif.Package{Name: "log4j-core", Version: "2.14.1", Ecosystem: "maven", AdvisoryID: "CVE-2021-44228"}},
		{"trivy", "CVE-2022-1271", ``, bagOf(`"purl":"pkg:deb/debian/gzip@1.10-4?arch=amd64&distro=debian-11"`), sarif.Package{Name: "gzip", Version: "1.10-4", AdvisoryID: "CVE-2022-1271"}},
	} {
		r := only(t, read(t, withRule(c.tool, c.id, c.rule, c.result)))
		if r.Product != vocabulary.SCA || r.Package == nil || *r.Package != c.want {
			t.Errorf("%s %s: %s %+v, want %+v", c.tool, c.id, r.Product, r.Package, c.want)
		}
	}
}

// A code scanner's result stays one, whatever properties it has.
func TestPropertiesOfCodeScanners(t *testing.T) {
	r := only(t, read(t, withRule("CodeQL", "js/sqli", bagOf(`"tags":["vulnerability"]`), bagOf(`"component":"api","package":"web"`))))
	if r.Product != vocabulary.SAST || r.Package != nil {
		t.Errorf("product %s, package %+v", r.Product, r.Package)
	}
}

// Reports of tools with several products say which product each result is of.
func TestProductsOfMixedReports(t *testing.T) {
	for property, want := range map[string]string{"SCA": "sca", "Secret Detection": "secrets", "KICS": "sast", "": "sast"} {
		if r := only(t, read(t, withRule("any", "r", ``, bagOf(`"product":"secrets"`)))); r.Product != vocabulary.Secrets {
			t.Errorf("product %s", r.Product)
		}
		if r := only(t, read(t, withRule("Checkmarx One", "r", ``, bagOf(`"scanType":"`+property+`"`)))); r.Product != want {
			t.Errorf("%q: product %s, want %s", property, r.Product, want)
		}
	}
}

// Steps come from the run's table by index, and what the step says itself wins.
func TestFlows(t *testing.T) {
	r := only(t, read(t, run(`"threadFlowLocations":[{"kinds":["source"],"nestingLevel":1,"importance":"important",
		"location":{"message":{"text":"from the table"},"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":3,"snippet":{"text":"read()\n"}}}}}],
		"tool":{"driver":{"name":"t"}},"results":[{"ruleId":"r","message":{"text":"m"},
		"relatedLocations":[{"id":1,"message":{"text":"declared here"},"physicalLocation":{"artifactLocation":{"uri":"b.c"},"region":{"startLine":9}}}],
		"codeFlows":[{"message":{"text":"flows"},"threadFlows":[{"id":"main","locations":[{"index":0},{"index":0,"importance":"essential","nestingLevel":0},
			{"location":{"message":{"text":"no place"}}},{"index":7},{}]}]}],
		"fixes":[{"description":{"text":"use a parameter"},"artifactChanges":[{"artifactLocation":{"uri":"a.c"},
			"replacements":[{"deletedRegion":{"startLine":3,"endLine":3,"endColumn":7},"insertedContent":{"text":"safe()"}}]}]}]}]`)))
	if got, want := fmt.Sprintf("%+v", r.Flows), `[{Message:flows Threads:[{ID:main Message: Steps:[`+
		`{RelatedLocation:{Path:a.c Line:3 Column:1 EndLine:3 EndColumn:1 Message:from the table Logical:} Snippet:read() Kinds:[source] Nesting:1 Importance:important} `+
		`{RelatedLocation:{Path:a.c Line:3 Column:1 EndLine:3 EndColumn:1 Message:from the table Logical:} Snippet:read() Kinds:[source] Nesting:0 Importance:essential} `+
		`{RelatedLocation:{Path: Line:1 Column:1 EndLine:1 EndColumn:1 Message:no place Logical:} Snippet: Kinds:[] Nesting:0 Importance:}]}]}]`; got != want {
		t.Errorf("flows are\n%s\nwant\n%s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", r.Related), `[{Path:b.c Line:9 Column:1 EndLine:9 EndColumn:1 Message:declared here Logical:}]`; got != want {
		t.Errorf("related locations are %s, want %s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", r.Fixes), `[{Description:use a parameter Changes:[{Path:a.c Line:3 Column:1 EndLine:3 EndColumn:7 Inserted:safe()}]}]`; got != want {
		t.Errorf("fixes are %s, want %s", got, want)
	}
}

// Long flows are cut, and a warning says so.
func TestLongFlowsAreCut(t *testing.T) {
	step := `{"location":{"physicalLocation":{"artifactLocation":{"uri":"a.c"},"region":{"startLine":1,"snippet":{"text":"` + strings.Repeat("x", 1000) + `"}}}}},`
	o := read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"codeFlows":[{"threadFlows":[{"locations":[`+strings.Repeat(step, 300)+`{}]}]}]}`))
	steps, size := only(t, o).Flows[0].Threads[0].Steps, 0
	for _, s := range steps {
		size += len(s.Snippet)
	}
	if len(steps) > 200 || len(steps) < 60 || size > 64<<10 {
		t.Errorf("%d steps of %d bytes", len(steps), size)
	}
	if warnings := fmt.Sprint(o.report.Runs[0].Warnings); !strings.Contains(warnings, "flows or fixes of 1 results are cut") {
		t.Errorf("warnings are %s", warnings)
	}
}

// The first suppression that counts and has a reason is kept, with the person that tools write into its properties.
func TestSuppressionsOfTools(t *testing.T) {
	r := only(t, read(t, driver("t", `{"ruleId":"r","message":{"text":"m"},"suppressions":[{"kind":"external","status":"underReview","justification":"no"},
		{"kind":"inSource"},{"kind":"External","status":"accepted","justification":"fine","properties":{"SuppressedBy":"kim"}}]}`)))
	if !r.Suppressed || r.SuppressionKind != "external" || r.SuppressionReason != "fine" || r.SuppressionAuthor != "kim" {
		t.Errorf("%+v", r)
	}
}

// A severity that cannot be read is told, unless something of equal rank is read.
func TestUnreadSeverities(t *testing.T) {
	for _, c := range []struct {
		rule, result string
		want         string // what the warning quotes, or empty
	}{
		{``, `"level":"strange"`, `"strange"`},
		{``, bagOf(`"security-severity":"9.8/100"`), `"9.8/100"`},
		{bagOf(`"security-severity":"-1"`), `"level":"note"`, `"-1"`},
		{`"defaultConfiguration":{"level":"odd"}`, ``, `"odd"`},
		{`"defaultConfiguration":{"level":"odd"}`, `"level":"note"`, ""},
		{``, bagOf(`"security-severity":"-1","severity":"high"`), ""},
		{bagOf(`"security-severity":"UNKNOWN"`), `"level":"error"`, ""},
		{bagOf(`"security-severity":"0.0"`), `"level":"error"`, ""},
		{``, `"level":"critical"`, ""},
		{``, ``, ""},
	} {
		warnings := fmt.Sprint(read(t, withRule("t", "r", c.rule, c.result)).report.Runs[0].Warnings)
		if told := strings.Contains(warnings, "severity of 1 results cannot be read"); told != (c.want != "") || !strings.Contains(warnings, c.want) {
			t.Errorf("rule {%s}, result {%s}: %s", c.rule, c.result, warnings)
		}
	}
}
