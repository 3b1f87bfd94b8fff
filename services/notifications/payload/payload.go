package payload

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// MaxFindings is the maximum number of findings in one message.
const MaxFindings = 100

// Finding is a code finding that a scan reported for the first time.
type Finding struct {
	// ID is the finding's id in the API, FirstSeenScanID the scan's.
	ID, FirstSeenScanID int64
	// CheckID is the tool's rule name.
	CheckID string
	Path    string
	// Line, Column, EndLine and EndColumn count from 1; 0 is unknown.
	Line, Column, EndLine, EndColumn int32
	Message                          string
	// Severity is low, medium, high or critical.
	Severity string
	// CommittedAt is formatted in UTC without a zone.
	CommittedAt time.Time
	CommitURL   string
	// Ref is the full ref.
	Ref string
	// RepoName is the name of the project.
	RepoName string
	// CreatedAt is when the finding was first seen.
	CreatedAt time.Time
	Metadata  Metadata
}

// Metadata describes the finding's rule. Empty fields are omitted.
type Metadata struct {
	Category string
	// Confidence is low, medium or high; the message has it in upper case.
	Confidence             string
	CWE, OWASP             []string
	Subcategories          []string
	VulnerabilityClasses   []string
	PolicyID               int64
	PolicyName, PolicySlug string
	// Actions are the policy's actions on the finding; none for a monitoring policy.
	Actions []string
}

// Scan is a scan that has ended.
type Scan struct {
	ID, DeploymentID, RepositoryID int64
	// EnabledProducts are sast, sca, secrets or ai_sast.
	EnabledProducts []string
	// ExitCode is the scanner's exit code; nil becomes null.
	ExitCode               *int32
	Meta                   Meta
	StartedAt, CompletedAt time.Time
	// Stats are copied; numbers are truncated to integers.
	Stats map[string]any
	// TenantName is the slug of the deployment.
	TenantName string
}

// Meta holds the metadata that the scan's environment reported. Empty fields become null.
type Meta struct {
	On, Branch, Commit, Config, RepoURL, CIJobURL, Repository, CommitTitle          string
	PullRequestID, PullRequestTitle                                                 string
	CommitAuthorName, CommitAuthorImageURL, CommitAuthorEmail, CommitAuthorUsername string
	PullRequestAuthorUsername, PullRequestAuthorImageURL                            string
}

// Findings is the body of the message about findings: a list.
func Findings(list []Finding) []byte {
	out := []byte{'['}
	for i, f := range list {
		if i > 0 {
			out = append(out, ',')
		}
		wrapper := openObject(out)
		wrapper.key("semgrep_finding")
		wrapper.out = appendFinding(wrapper.out, f)
		out = wrapper.close()
	}
	return append(out, ']')
}

// ScanFinished is the body of the message about a scan: one object.
func ScanFinished(s Scan) []byte {
	wrapper := openObject(nil)
	wrapper.key("semgrep_scan")
	wrapper.out = appendScan(wrapper.out, s)
	return wrapper.close()
}

func appendFinding(out []byte, f Finding) []byte {
	o := openObject(out)
	o.text("check_id", f.CheckID)
	o.text("path", f.Path)
	o.number("line", int64(f.Line))
	o.number("column", int64(f.Column))
	o.number("end_line", int64(f.EndLine))
	o.number("end_column", int64(f.EndColumn))
	o.text("message", f.Message)
	o.number("severity", severity(f.Severity))
	o.number("index", 0)
	o.text("commit_date", f.CommittedAt.UTC().Format("2006-01-02T15:04:05"))
	o.text("commit_url", f.CommitURL)
	o.text("first_seen_scan_id", hashedID("scan", f.FirstSeenScanID))
	o.text("id", hashedID("finding", f.ID))
	o.number("numeric_id", f.ID)
	o.text("ref", f.Ref)
	o.text("repo_name", f.RepoName)
	o.text("start_date", f.CreatedAt.UTC().Format("2006-01-02 15:04:05.000000+00:00"))
	o.key("metadata")
	o.out = appendMetadata(o.out, f.Metadata)
	return o.close()
}

func appendMetadata(out []byte, m Metadata) []byte {
	o := openObject(out)
	o.textIfAny("category", m.Category)
	o.textIfAny("confidence", strings.ToUpper(m.Confidence))
	o.textsIfAny("cwe", m.CWE)
	o.textsIfAny("owasp", m.OWASP)
	o.textsIfAny("subcategory", m.Subcategories)
	o.textsIfAny("vulnerability_class", m.VulnerabilityClasses)
	if m.PolicySlug != "" {
		o.key("semgrep.policy")
		policy := openObject(o.out)
		policy.number("id", m.PolicyID)
		policy.text("name", m.PolicyName)
		policy.text("slug", m.PolicySlug)
		o.out = policy.close()
	}
	o.texts("dev.semgrep.actions", m.Actions)
	return o.close()
}

func appendScan(out []byte, s Scan) []byte {
	o := openObject(out)
	o.number("deployment_id", s.DeploymentID)
	o.texts("enabled_products", s.EnabledProducts)
	if s.ExitCode == nil {
		o.textOrNull("exit_code", "")
	} else {
		o.number("exit_code", int64(*s.ExitCode))
	}
	o.text("hashed_id", hashedID("scan", s.ID))
	o.number("id", s.ID)
	o.key("meta")
	o.out = appendMeta(o.out, s.Meta)
	o.number("repository_id", s.RepositoryID)
	o.text("started_at", formatTime(s.StartedAt))
	o.text("completed_at", formatTime(s.CompletedAt))
	o.values("stats", s.Stats)
	o.text("tenant_name", s.TenantName)
	return o.close()
}

func appendMeta(out []byte, m Meta) []byte {
	o := openObject(out)
	o.textOrNull("on", m.On)
	o.textOrNull("branch", m.Branch)
	o.textOrNull("commit", m.Commit)
	o.textOrNull("config", m.Config)
	o.textOrNull("repo_url", m.RepoURL)
	o.textOrNull("ci_job_url", m.CIJobURL)
	o.textOrNull("repository", m.Repository)
	o.textOrNull("commit_title", m.CommitTitle)
	o.textOrNull("pull_request_id", m.PullRequestID)
	o.textOrNull("pull_request_title", m.PullRequestTitle)
	o.textOrNull("commit_author_name", m.CommitAuthorName)
	o.textOrNull("commit_author_image_url", m.CommitAuthorImageURL)
	o.textOrNull("commit_author_email", m.CommitAuthorEmail)
	o.textOrNull("commit_author_username", m.CommitAuthorUsername)
	o.textOrNull("pull_request_author_username", m.PullRequestAuthorUsername)
	o.textOrNull("pull_request_author_image_url", m.PullRequestAuthorImageURL)
	return o.close()
}

// formatTime formats a time as the API does.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// severity returns the scanners' severity number (contract facts, section 9): 2 is error, 1 warning, 0 info.
func severity(word string) int64 {
	switch word {
	case "critical", "high":
		return 2
	case "medium":
		return 1
	}
	return 0
}

// hashedID derives a stable id. Receivers compare it and never compute with it.
func hashedID(kind string, id int64) string {
	sum := sha256.Sum256([]byte(kind + ":" + strconv.FormatInt(id, 10)))
	return hex.EncodeToString(sum[:12])
}
