package sarif

import (
	"strings"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// aliases are the names that one tool goes by under different licences and versions.
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

// secretsTools and scaTools are parts of tool names in lower case; a tool that is in neither list is a code scanner.
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

// ruleProduct tells what a rule of a tool that does several jobs is for (Trivy tags its rules so); "" if the rule does
// not say.
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

// sensitiveRule tells the secret rules of tools that are not secrets tools: their snippets hold a secret all the same.
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
