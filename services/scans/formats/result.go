package formats

// The products of results. An empty product follows from the tool and the rule.
const (
	ProductSAST    = "sast"
	ProductSCA     = "sca"
	ProductSecrets = "secrets"
)

// Tool is the tool that wrote a report.
type Tool struct {
	// Name identifies the tool: findings of another name are findings of another tool. Version may be empty.
	Name, Version string
	// Product is the product of all results, or empty.
	Product string
	// Directory is the directory in which the tool ran, or empty.
	Directory string
	// Category separates analyses of one tool, such as the name of an image, or is empty.
	Category string
	// RanAt is when the tool ended, as the report writes it, or empty. What is no time is ignored.
	RanAt string
}

// Result is one problem in a report. Only the rule or the message is required. Texts need not be cut or cleaned.
type Result struct {
	Rule Rule
	// Message describes this result. It must not contain the secret of a secrets tool; Snippet may.
	Message string
	// Severity is the tool's word, such as "HIGH" or "moderate". Score is a CVSS base score such as "7.5", which takes
	// precedence. Both may be empty.
	Severity, Score string
	// Level is a level of SARIF (error, warning or note) if the tool has no other word, or empty.
	Level string
	// Confidence is high, medium, low, or empty.
	Confidence string

	// Path is as the tool writes it. Lines and columns are 1-based; 0 means unknown. EndColumn is exclusive.
	Path                             string
	Line, Column, EndLine, EndColumn int
	// Logical is the qualified name of the place if it is not a file, such as "Deployment/web", or adds to it. LogicalKind
	// is a kind of SARIF, such as kindResource, or empty.
	Logical, LogicalKind string
	// Snippet is the code of the lines. It is redacted if it may contain a secret.
	Snippet string

	// Fingerprints are ids of the result by the tool that do not change when its line moves: name to value.
	Fingerprints map[string]string
	// Package is the dependency of a vulnerability, or nil.
	Package *Package
	// Product is the result's own product if the tool has several.
	Product string
	// Suppressed is the decision of the tool or the code to ignore the result, or nil.
	Suppressed *Suppression
	// HistoricalCommit is the commit of a secret that was found in the history.
	HistoricalCommit string
	// Related are other places that explain the result. Flow is the way of the data to it, the source first.
	Related, Flow []Place
}

// kindResource is the kind of logical locations that are no code.
const kindResource = "resource"

// Rule is what a report says about the rule of a result. The first result of a rule describes it; later ones may only
// name it.
type Rule struct {
	// ID identifies the rule within the tool. If it is empty, the rule is "<tool>/unnamed".
	ID, Name string
	// Message is a short description in one line, Description a longer one, Help advice in Markdown.
	Message, Description, Help, HelpURI string
	// CWE has texts such as "CWE-79", "79" or "CWE-79: Cross-site Scripting"; OWASP such as "A03:2021 - Injection".
	CWE, OWASP []string
	Tags       []string
	// References are pages about the problem. A text may have several.
	References []string
}

// Package is a dependency with a vulnerability. Each field may be empty.
type Package struct {
	Name, Version string
	// Fixed has the versions without the vulnerability.
	Fixed []string
	// Ecosystem is the tool's word, such as "npm" or "gobinary". PURL is a package URL.
	Ecosystem, PURL string
	// Advisory is the identifier of the vulnerability if the rule's id is none, such as "CVE-2021-44228".
	Advisory string
	// Transitivity is direct, transitive, or empty. Reachability is a word of the API's exposures, or empty, and
	// ReachableIf the condition of a conditional one. Malicious says that the package was made to do harm.
	Transitivity, Reachability, ReachableIf string
	Malicious                               bool
	// Lockfile and Manifest name the package. LockfileLine is 0 if it is unknown.
	Lockfile, Manifest string
	LockfileLine       int
}

// Suppression is a decision to ignore a result.
type Suppression struct{ Reason, Author string }

// Place is a place with a text.
type Place struct {
	Path         string
	Line, Column int
	Message      string
	Snippet      string
}
