package sarif

import (
	"slices"
	"strings"
)

// foundCodesOf has the exit codes by which tools say that they finished and found something, as their manuals document
// them. Some tools then write executionSuccessful: false although nothing failed.
var foundCodesOf = map[string]func(code int) bool{
	"actionlint": codes(1), "ansible-lint": codes(2), "bandit": codes(1), "biome": codes(1), "brakeman": codes(3), "checkov": codes(1),
	"codespell": codes(65), "dependency-check": codes(15), "detekt": codes(2), "eslint": codes(1), "flake8": codes(1),
	"gitleaks": codes(1), "golangci-lint": codes(1), "gosec": codes(1), "govulncheck": codes(3), "grype": codes(1, 2), "hadolint": codes(1),
	"infer": codes(2), "kics": codes(20, 30, 40, 50, 60), "ktlint": codes(1), "kube-linter": codes(1), "kubescape": codes(1),
	"mobsfscan": codes(1), "mypy": codes(1), "njsscan": codes(1), "npm audit": codes(1), "opengrep": codes(1), "osv-scanner": codes(1),
	"phpcs": codes(1, 2), "phpstan": codes(1), "pip-audit": codes(1), "pmd": codes(4), "psalm": codes(2), "revive": codes(1),
	"rubocop": codes(1), "ruff": codes(1), "semgrep": codes(1), "shellcheck": codes(1), "snyk": codes(1), "staticcheck": codes(1),
	"stylelint": codes(2), "swiftlint": codes(2), "terrascan": codes(3), "tflint": codes(2), "tfsec": codes(1), "trivy": codes(1),
	"trufflehog": codes(183), "yamllint": codes(1, 2), "zizmor": codes(10, 11, 12, 13, 14),
	// Bits: bugs found 1, missing classes 2, error 4.
	"spotbugs": func(code int) bool { return code&^3 == 0 },
	// Bits: fatal 1, error 2, warning 4, refactor 8, convention 16, usage error 32.
	"pylint": func(code int) bool { return code&^30 == 0 },
	// Bits: consistency 1 to custom checks 32; 128 and above are failures.
	"credo": func(code int) bool { return 0 <= code && code < 128 },
}

func codes(all ...int) func(int) bool {
	return func(code int) bool { return slices.Contains(all, code) }
}

// foundCodes returns the exit codes of a tool that found something. The name may have more words, as in "Snyk Open
// Source".
func foundCodes(slug string) (documented func(code int) bool, known bool) {
	for name := slug; name != ""; name = name[:max(strings.LastIndexAny(name, " -("), 0)] {
		if documented, known = foundCodesOf[strings.TrimSpace(name)]; known {
			return documented, true
		}
	}
	return nil, false
}

// isSuccessSignal reports whether a text in exitSignalName is no signal. SpotBugs writes the names of its exit codes
// there.
func isSuccessSignal(name string) bool {
	for part := range strings.SplitSeq(strings.ToUpper(name), ",") {
		switch strings.TrimSpace(strings.ReplaceAll(part, "_", " ")) {
		case "", "SUCCESS", "OK", "NONE", "BUGS FOUND", "MISSING CLASS", "MISSING CLASSES":
		default:
			return false
		}
	}
	return true
}
