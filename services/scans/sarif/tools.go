package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// aliases maps the names of one tool under different licences and versions.
var aliases = map[string]string{
	"semgrep oss": "semgrep", "semgrep pro": "semgrep", "semgrep code": "semgrep", "opengrep oss": "opengrep",
	"defsec": "tfsec",
}

// toolSlug is the stable name of a tool.
func toolSlug(name string) string {
	slug := strings.ToLower(oneLine(name))
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
	"yarn audit", "pip-audit", "cargo-audit", "cargo audit", "bundler-audit", "govulncheck", "nancy", "retire.js", "retirejs",
	"docker scout", "dep-scan", "depscan", "semgrep supply chain", "anchore", "xray", "composer audit",
}

func productOf(slug string) string {
	for _, name := range secretsTools {
		if strings.Contains(slug, name) {
			return vocabulary.Secrets
		}
	}
	for _, name := range scaTools {
		if strings.Contains(slug, name) {
			return vocabulary.SCA
		}
	}
	return vocabulary.SAST
}

// ruleProduct returns the product of a rule of a tool with several products, from the tags that Trivy uses. It is "" if
// the rule has none.
func ruleProduct(tags []string) string {
	for _, tag := range tags {
		switch strings.ToLower(tag) {
		case "secret", "secrets":
			return vocabulary.Secrets
		case "misconfiguration":
			return vocabulary.SAST
		case "vulnerability":
			return vocabulary.SCA
		}
	}
	return ""
}

// sensitiveRule reports whether a rule looks for secrets, although its tool is not a secrets tool. Its snippets contain
// secrets, too.
func sensitiveRule(id string, tags []string) bool {
	id = strings.ToLower(id)
	if strings.HasPrefix(id, "ckv_secret") {
		return true
	}
	for _, part := range strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '/' || r == ':' }) {
		if part == "secrets" || part == "secret" {
			return true
		}
	}
	return ruleProduct(tags) == vocabulary.Secrets
}
