package formats

import (
	"fmt"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// hint says what a document of an unknown format looks like, and what to do instead of uploading it.
type hint struct {
	is     func(*Outline) bool
	what   string
	advice string
}

// toJSON is the advice for tools that write neither SARIF nor JSON, and convert for tools that write JSON. Mappings
// read nothing but JSON.
const (
	toJSON  = "convert it to SARIF or DefectDojo's generic JSON"
	convert = toJSON + ", or describe it in a mapping (palisade formats --help)"
)

// hints are compared in this order.
var hints = []hint{
	{has("[].runs"), "a list of SARIF reports", "upload each of them by itself (jq '.[0]' prints the first)"},
	{has("sarif"), "a SARIF report within JSON", "upload the SARIF report itself, or its base64 of gzip in the field sarif"},

	// Tools that write SARIF, too.
	{has("analysisVulnerabilities"), "Horusec JSON", "run horusec with -o sarif"},
	{has("kics_version"), "KICS JSON", "run kics scan with --report-formats sarif"},
	{has("queries[].query_name", "queries[].files"), "KICS JSON", "run kics scan with --report-formats sarif"},
	{has("vulnerabilities", "packageManager"), "Snyk JSON", "run snyk test with --sarif"},
	{has("[].vulnerabilities", "[].packageManager"), "Snyk JSON", "run snyk test with --sarif"},
	{has("infrastructureAsCodeIssues"), "Snyk JSON", "run snyk iac test with --sarif"},
	{has("template-id", "matched-at"), "Nuclei JSON lines", "run nuclei with -sarif-export report.sarif"},
	{has("[].template-id", "[].matched-at"), "Nuclei JSON", "run nuclei with -sarif-export report.sarif"},
	{has("results[].rule_provider"), "tfsec JSON", "run tfsec with --format sarif"},
	{has("results.violations", "results.scan_summary"), "Terrascan JSON", "run terrascan scan with -o sarif"},
	{has("reportSchema", "scanInfo"), "Dependency-Check JSON", "run dependency-check with --format SARIF"},
	{has("analysis.scanInfo"), "Dependency-Check XML", "run dependency-check with --format SARIF"},
	{has("GosecVersion"), "gosec JSON", "run gosec with -fmt sarif"},
	{has("Issues[].FromLinter"), "golangci-lint JSON", "run golangci-lint with --output.sarif.path report.sarif"},
	{has("[].taint_trace"), "Psalm JSON", "run psalm with --report=report.sarif"},
	{has("[].shortcode", "[].snippet"), "Psalm JSON", "run psalm with --report=report.sarif"},
	{has("metadata.rubocop_version"), "RuboCop JSON", "run rubocop with --format sarif, or " + convert},
	{has("[].code", "[].noqa_row"), "Ruff JSON", "run ruff check with --output-format sarif"},
	{has("[].code", "[].level", "[].line", "[].file"), "Hadolint JSON", "run hadolint with --format sarif"},
	{has("mobsfscan_version"), "mobsfscan JSON", "run mobsfscan with --sarif"},
	{has("BugCollection"), "SpotBugs XML", "run spotbugs with -sarif, also for FindSecBugs"},
	{has("pmd"), "PMD XML", "run pmd check with --format sarif"},
	{has("checkstyle"), "Checkstyle XML", "run the tool with SARIF output (checkstyle -f sarif)"},
	{has("scanID", "results[].similarityId"), "Checkmarx JSON", "run cx scan create with --report-format sarif"},
	{has("CxXMLResults"), "Checkmarx XML", "run cx scan create with --report-format sarif, or " + toJSON},

	// Tools that do not.
	{has("NessusClientData_v2"), "a Nessus report", toJSON},
	{has("issues.issue.serialNumber"), "Burp XML", toJSON},
	{has("FVDL"), "Fortify FVDL", "export the issues from Fortify as SARIF (fcli), or " + toJSON},
	{has("detailedreport"), "Veracode XML", toJSON},
	{has("scan_id", "findings[].issue_type_id"), "the JSON of a Veracode pipeline scan", convert},
	{has("pmd-cpd"), "PMD CPD XML", "upload a report of problems: duplicated code has no findings"},
	{has("testsuites"), "JUnit XML", "run the scanner with SARIF output: JUnit has neither rules nor lines"},
	{has("testsuite"), "JUnit XML", "run the scanner with SARIF output: JUnit has neither rules nor lines"},
	{has("[].check_name", "[].location.path"), "Code Climate JSON (GitLab code quality)", "run the tool with SARIF output, or " + convert},
	{has("results[].vulnerabilityDistribution"), "twistcli JSON (Prisma Cloud)", convert},
	{has("results[].complianceDistribution"), "twistcli JSON (Prisma Cloud)", convert},
	{has("imageDigest", "vulnerabilities[].vuln"), "Anchore JSON", "scan the image with grype -o json, or " + convert},
	{has("manifest_hash", "vulnerabilities"), "Clair JSON", convert},
	{has("LayerCount", "Vulnerabilities"), "Clair JSON", convert},
	{has("Controls[].tests"), "kube-bench JSON", convert},
	{has("[].finding_info", "[].class_uid"), "OCSF JSON, as Prowler writes it", convert},
	{has("finding_info", "class_uid"), "OCSF JSON lines", convert},
	{has("Findings[].ProductArn"), "the findings of AWS Security Hub (ASFF)", convert},
	{has("[].ProductArn"), "the findings of AWS Security Hub (ASFF)", convert},
	{has("app_name", "code_analysis"), "MobSF JSON", "scan the source code with mobsfscan --sarif, or " + convert},
	{has("totals.file_errors", "files"), "PHPStan JSON", convert},
	{has("[].message-id", "[].symbol"), "Pylint JSON", convert},
	{has("report_meta", "affected_packages"), "Safety JSON", convert},
	{has("artifacts", "artifactRelationships"), "syft JSON", "write an SBOM with syft -o cyclonedx-json"},
	{has("sbom.spdxVersion"), "an SBOM within JSON, as the API of GitHub writes it", "upload the SBOM itself (jq .sbom)"},
	{has("@graph", "@context"), "SPDX 3", "write SPDX 2.3 or CycloneDX"},
	{has("issues[].component", "paging"), "an answer of the SonarQube API", "use the generic issue format, or " + convert},
	{has("[].most_recent_instance"), "an answer of GitHub's code scanning API", "download the analysis as application/sarif+json"},

	// No reports.
	{has("lockfileVersion"), "a package-lock.json", "upload the report of npm audit --json"},
	{has("content-hash", "packages"), "a composer.lock", "upload the report of a scanner of it"},
	{has("name", "devDependencies"), "a package.json", "upload the report of a scanner of it"},
	{has("name", "dependencies", "version"), "a package.json", "upload the report of a scanner of it"},
	{isError, "the error of an API", "look at the step that wrote the file"},
}

// has recognises documents with all of the paths.
func has(paths ...string) func(*Outline) bool {
	return func(o *Outline) bool {
		for _, path := range paths {
			if !o.Has(path) {
				return false
			}
		}
		return true
	}
}

// isError recognises small objects such as {"message": "Not Found", "status": 404}.
func isError(o *Outline) bool {
	return o.Root == '{' && len(o.paths) <= 6 && (o.Value("message") != "" || o.Value("error") != "" || o.Value("error.message") != "")
}

// explain says what a document of an unknown format looks like, and what to do.
func explain(o *Outline) string {
	for _, h := range hints {
		if h.is(o) {
			return fmt.Sprintf("this is %s: %s", h.what, h.advice)
		}
	}
	const allowed = "docs/scanners.md lists the known formats"
	switch {
	case o.lines:
		return fmt.Sprintf("these are JSON lines with the members %s: each line is a document of its own; %s", o.members(), convert)
	case o.Root == '<':
		return fmt.Sprintf("this is XML with the root element %s, which is not known: %s; %s", o.members(), toJSON, allowed)
	case len(o.paths) == 0 && o.Root == '[':
		return "an empty list names no tool: say which one wrote it with the parameter format, such as format=eslint-json; " + allowed
	case len(o.paths) == 0 && o.Root == '{':
		return "an empty object names no tool; " + allowed
	case o.Root == '{' && len(o.paths) == 1 && (o.Has("results") || o.Has("findings") || o.Has("issues")):
		return fmt.Sprintf("an object with nothing but %s names no tool: say which one wrote it with the parameter format, such as format=osv-scanner-json; %s",
			o.members(), allowed)
	case o.Root == '{':
		return fmt.Sprintf("the format of the report is not known: it is an object with the members %s; %s", o.members(), allowed)
	case o.Root == '[':
		return fmt.Sprintf("the format of the report is not known: it is a list with %s; %s", o.members(), allowed)
	}
	return "the report is a JSON value and no document: " + allowed
}

// members lists the first names at the top, or of the first elements of a list, for people.
func (o *Outline) members() string {
	depth := 1
	if o.Root == '[' {
		depth = 2
	}
	var names []string
	for _, path := range o.paths {
		if len(path) == depth && len(names) < 8 {
			names = append(names, jsonstream.Cut(jsonstream.Clean(path[depth-1]), 40))
		}
	}
	if names == nil {
		return "other values than objects"
	}
	return strings.Join(names, ", ")
}
