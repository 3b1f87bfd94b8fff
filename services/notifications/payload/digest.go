package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/palisade/palisade/services/findings/vocabulary"
)

// digestKey is the only key of a message to people about new findings.
const digestKey = "palisade_findings"

const (
	// NamedAtOnce is the maximum number of findings that one message to people names, MaxDigests the maximum number of
	// messages about a scan. Further messages name only critical findings.
	NamedAtOnce = 50
	MaxDigests  = 3
	// digestLine is the maximum length of a rule, a path and a message in it, in bytes. 50 findings of that length fit
	// into a chat message.
	digestLine = 150
)

// Severities are the severities of findings, the worst first.
var Severities = []string{
	vocabulary.SeverityCritical, vocabulary.SeverityHigh, vocabulary.SeverityMedium, vocabulary.SeverityLow,
}

// SeverityCount is the number of findings of a severity.
type SeverityCount struct {
	Severity string
	Count    int64
}

// Digest tells people which findings a scan found first: how many of each severity, and the worst ones by name.
type Digest struct {
	DeploymentID, ProjectID, ScanID int64
	// Project is the name of the project, Ref the full ref.
	Project, Ref string
	// Counts are in the order of Severities, without zeros.
	Counts []SeverityCount
	// Named are the worst findings, the worst first.
	Named []DigestFinding
	// Link leads to the list of findings.
	Link   string
	SentAt time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// DigestFinding is a named finding.
type DigestFinding struct {
	ID       int64  `json:"id"`
	Severity string `json:"severity"`
	Rule     string `json:"rule"`
	Path     string `json:"path"`
	// Line counts from 1; 0 is unknown.
	Line    int32  `json:"line"`
	Message string `json:"message"`
}

// ToName is how many of the worst findings a digest names, if it has these counts: NamedAtOnce, or more critical ones,
// as many as MaxDigests messages hold.
func ToName(counts []SeverityCount) int {
	named := int64(NamedAtOnce)
	for _, c := range counts {
		if c.Severity == vocabulary.SeverityCritical {
			named = max(named, c.Count)
		}
	}
	return int(min(named, MaxDigests*NamedAtOnce))
}

// Bodies are the bodies of the messages, each one object. The contract has no such messages.
func (d Digest) Bodies() (bodies [][]byte) {
	parts := slices.Collect(slices.Chunk(d.Named, NamedAtOnce))
	for i, named := range parts {
		bodies = append(bodies, d.body(named, i, len(parts)))
	}
	return bodies
}

func (d Digest) total() (n int64) {
	for _, c := range d.Counts {
		n += c.Count
	}
	return n
}

func (d Digest) body(named []DigestFinding, part, parts int) []byte {
	wrapper := openObject(nil)
	wrapper.key(digestKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", d.DeploymentID)
	o.number("project_id", d.ProjectID)
	o.text("project", d.Project)
	o.text("ref", d.Ref)
	o.number("scan_id", d.ScanID)
	o.number("findings", d.total())
	o.key("by_severity")
	counts := openObject(o.out)
	for _, c := range d.Counts {
		counts.number(c.Severity, c.Count)
	}
	o.out = counts.close()
	ids := make([]string, len(named))
	for i, f := range named {
		ids[i] = fmt.Sprint(f.ID)
	}
	o.texts("finding_ids", ids)
	o.key("named")
	o.out = appendNamed(o.out, named)
	o.number("part", int64(part+1))
	o.number("parts", int64(parts))
	o.text("link", d.Link)
	o.text("title", d.title(part, parts))
	o.text("message", d.text(named, part, parts))
	o.text("sent_at", formatTime(d.SentAt))
	o.text("tenant_name", d.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func appendNamed(out []byte, named []DigestFinding) []byte {
	out = append(out, '[')
	for i, f := range named {
		if i > 0 {
			out = append(out, ',')
		}
		o := openObject(out)
		o.number("id", f.ID)
		o.text("severity", f.Severity)
		o.text("rule", shorten(f.Rule))
		o.text("path", shorten(f.Path))
		o.number("line", int64(f.Line))
		o.text("message", shorten(f.Message))
		out = o.close()
	}
	return append(out, ']')
}

// Named reads the findings that a body of Bodies names, and the link to the list; none for other bodies.
func Named(body []byte) (deploymentID int64, link string, named []DigestFinding) {
	var sent map[string]struct {
		DeploymentID int64           `json:"deployment_id"`
		Link         string          `json:"link"`
		Named        []DigestFinding `json:"named"`
	}
	if !bytes.HasPrefix(body, []byte(`{"`+digestKey+`"`)) || json.Unmarshal(body, &sent) != nil {
		return 0, "", nil
	}
	digest := sent[digestKey]
	return digest.DeploymentID, digest.Link, digest.Named
}

func (d Digest) title(part, parts int) string {
	noun := "1 new finding"
	if n := d.total(); n > 1 {
		noun = fmt.Sprintf("%d new findings", n)
	}
	ref := strings.TrimPrefix(oneLine(d.Ref), "refs/heads/")
	title := fmt.Sprintf("%s in %s (%s): %s", noun, oneLine(d.Project), ref, d.counts())
	if parts > 1 {
		title += fmt.Sprintf(" [%d of %d]", part+1, parts)
	}
	return title
}

// counts says how many findings have each severity.
func (d Digest) counts() string {
	texts := make([]string, len(d.Counts))
	for i, c := range d.Counts {
		texts[i] = fmt.Sprintf("%d %s", c.Count, c.Severity)
	}
	return strings.Join(texts, ", ")
}

func (d Digest) text(named []DigestFinding, part, parts int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d in all: %s\nList: %s\n\n", d.total(), d.counts(), d.Link)
	for _, f := range named {
		place := shorten(f.Path)
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, f.Line)
		}
		fmt.Fprintf(&out, "%s: %s at %s, finding %d\n    %s\n",
			f.Severity, shorten(f.Rule), place, f.ID, shorten(f.Message))
	}
	if part+1 < parts {
		out.WriteString("More critical findings are in the next message.\n")
		return out.String()
	}
	more := d.total() - int64(len(d.Named))
	critical := int64(0)
	for _, c := range d.Counts {
		if c.Severity == vocabulary.SeverityCritical {
			critical = max(c.Count-int64(len(d.Named)), 0)
		}
	}
	switch {
	case critical > 0:
		fmt.Fprintf(&out, "and %d more, %d of them critical\n", more, critical)
	case more > 0:
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	return out.String()
}

// shorten is oneLine for the lines of a digest.
func shorten(text string) string { return oneLineOf(text, digestLine) }
