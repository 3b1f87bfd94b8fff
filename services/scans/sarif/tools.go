package sarif

import (
	"slices"
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/scans/jsonstream"
)

// aliases maps the names of one tool under different licences and versions.
var aliases = map[string]string{
	"semgrep oss": "semgrep", "semgrep pro": "semgrep", "semgrep code": "semgrep", "opengrep oss": "opengrep",
	"defsec": "tfsec",
}

// toolSlug is the stable name of a tool.
func toolSlug(name string) string {
	slug := strings.ToLower(jsonstream.OneLine(name))
	if known, ok := aliases[slug]; ok {
		return known
	}
	return slug
}

// secretsTools and scaTools are parts of tool names in lower case. Any other tool is a code scanner.
var secretsTools = []string{
	"gitleaks", "betterleaks", "trufflehog", "detect-secrets", "detect secrets", "ggshield", "gitguardian", "secretlint", "whispers",
	"nosey parker", "noseyparker", "kingfisher", "talisman", "git-secrets", "ripsecrets", "credsweeper", "2ms", "secretscanner",
	"secret scanner", "secret-detection", "secret detection", "semgrep secrets", "leaktk",
}

var scaTools = []string{
	"grype", "osv-scanner", "osv scanner", "snyk open source", "dependency-check", "dependency check", "trivy", "npm audit", "npm-audit",
	"yarn audit", "pip-audit", "cargo-audit", "cargo-deny", "cargo audit", "bundler-audit", "govulncheck", "nancy", "retire.js", "retirejs",
	"docker scout", "docker-scout", "dep-scan", "depscan", "semgrep supply chain", "anchore", "xray", "composer audit", "snyk container",
	"black duck", "blackduck", "whitesource", "mend sca", "mend bolt", "sonatype", "nexus iq", "nexus lifecycle", "dependency-track",
	"dependency track", "checkmarx sca", "cxsca", "veracode sca", "sourceclear", "fossa", "debricked", "cve-bin-tool", "pnpm audit",
	"pnpm-audit", "owasp dependency", "safety cli", "pyup",
}

// severalProducts are parts of names of tools whose reports mix products. Each result or rule says its own.
var severalProducts = []string{"checkmarx", "horusec", "wiz", "prisma cloud", "aqua"}

func contains(names []string, slug string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(slug, name) })
}

func productOf(slug string) string {
	switch {
	case contains(secretsTools, slug):
		return vocabulary.Secrets
	case contains(scaTools, slug), slug == "mend", slug == "clair":
		return vocabulary.SCA
	}
	return vocabulary.SAST
}

// isProduct has the names of products. As the product of a result they are clear, whatever the tool is; the readers of
// other formats write them.
var isProduct = map[string]bool{
	vocabulary.SAST: true, vocabulary.SCA: true, vocabulary.Secrets: true, vocabulary.AISAST: true,
}

// productWords are words for products in tags (Trivy) and properties (Checkmarx). Others say nothing.
var productWords = map[string]string{
	"secret": vocabulary.Secrets, "secrets": vocabulary.Secrets, "secret detection": vocabulary.Secrets, "secret_detection": vocabulary.Secrets,
	"misconfiguration": vocabulary.SAST, "sast": vocabulary.SAST, "kics": vocabulary.SAST, "iac": vocabulary.SAST,
	"vulnerability": vocabulary.SCA, "sca": vocabulary.SCA, "dependency": vocabulary.SCA, "dependency scanning": vocabulary.SCA,
	"dependency_scanning": vocabulary.SCA, "container": vocabulary.SCA, "container scanning": vocabulary.SCA, "container_scanning": vocabulary.SCA,
	"oss": vocabulary.SCA, "open source": vocabulary.SCA,
}

// productWord returns the product that the words name first, or "".
func productWord(words []string) string {
	for _, word := range words {
		if product := productWords[strings.ToLower(word)]; product != "" {
			return product
		}
	}
	return ""
}
