package payload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// collectedKey is the only key of a digest.
const collectedKey = "palisade_digest"

// MaxProjects is the maximum number of projects that a digest names.
const MaxProjects = 50

// Collected is a digest: which findings the scans since the last one found first, in all projects.
type Collected struct {
	DeploymentID int64
	// Counts are in the order of Severities, without zeros.
	Counts []SeverityCount
	// Projects are the first ones by severity. MoreProjects and MoreFindings count the rest.
	Projects                   []CollectedProject
	MoreProjects, MoreFindings int64
	// Gone counts new findings that are left out, because they are fixed, ignored or removed by now. MaybeMore: there may
	// be more, because only the worst findings of each scan were looked at.
	Gone      int64
	MaybeMore bool
	// Named are the worst findings, the worst first.
	Named []DigestFinding
	// Refs are the refs of these findings, in the same order.
	Refs []string
	// Link leads to the list of findings.
	Link   string
	SentAt time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// CollectedProject has the numbers of a project.
type CollectedProject struct {
	ID     int64
	Name   string
	Counts []SeverityCount
}

// Body is the body of the message: one object. The contract has no such message.
func (c Collected) Body() []byte {
	wrapper := openObject(nil)
	wrapper.key(collectedKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", c.DeploymentID)
	o.number("findings", total(c.Counts))
	o.key("by_severity")
	o.out = appendCounts(o.out, c.Counts)
	o.key("projects")
	o.out = append(o.out, '[')
	for i, p := range c.Projects {
		if i > 0 {
			o.out = append(o.out, ',')
		}
		one := openObject(o.out)
		one.number("project_id", p.ID)
		one.text("project", p.Name)
		one.number("findings", total(p.Counts))
		one.key("by_severity")
		one.out = appendCounts(one.out, p.Counts)
		o.out = one.close()
	}
	o.out = append(o.out, ']')
	o.number("more_projects", c.MoreProjects)
	o.number("gone", c.Gone)
	ids := make([]string, len(c.Named))
	for i, f := range c.Named {
		ids[i] = strconv.FormatInt(f.ID, 10)
	}
	o.texts("finding_ids", ids)
	o.key("named")
	o.out = appendNamed(o.out, c.Named)
	o.text("link", c.Link)
	o.text("title", c.title())
	o.text("message", c.text())
	o.text("sent_at", formatTime(c.SentAt))
	o.text("tenant_name", c.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func (c Collected) title() string {
	noun := "1 new finding"
	if n := total(c.Counts); n > 1 {
		noun = fmt.Sprintf("%d new findings", n)
	}
	where := fmt.Sprintf("%d projects", int64(len(c.Projects))+c.MoreProjects)
	if len(c.Projects) == 1 {
		where = oneLine(c.Projects[0].Name)
	}
	return fmt.Sprintf("%s in %s: %s", noun, where, bySeverity(c.Counts))
}

func (c Collected) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d since the last digest: %s\nList: %s\n\n", total(c.Counts), bySeverity(c.Counts), c.Link)
	for _, p := range c.Projects {
		fmt.Fprintf(&out, "%s: %s\n", shorten(p.Name), bySeverity(p.Counts))
	}
	if c.MoreProjects > 0 {
		fmt.Fprintf(&out, "and %d more projects with %d findings\n", c.MoreProjects, c.MoreFindings)
	}
	out.WriteByte('\n')
	for i, f := range c.Named {
		out.WriteString(f.lines(fmt.Sprintf(" in %s (%s)", shorten(f.Project), strings.TrimPrefix(shorten(c.Refs[i]), "refs/heads/"))))
	}
	if more := total(c.Counts) - int64(len(c.Named)); more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	if c.Gone > 0 {
		atLeast := ""
		if c.MaybeMore {
			atLeast = "at least "
		}
		fmt.Fprintf(&out, "\nNew since the last digest, and already fixed, ignored or removed: %s%d\n", atLeast, c.Gone)
	}
	return out.String()
}

func total(counts []SeverityCount) (n int64) {
	for _, c := range counts {
		n += c.Count
	}
	return n
}

// bySeverity says how many findings have each severity.
func bySeverity(counts []SeverityCount) string {
	texts := make([]string, len(counts))
	for i, c := range counts {
		texts[i] = fmt.Sprintf("%d %s", c.Count, c.Severity)
	}
	return strings.Join(texts, ", ")
}

func appendCounts(out []byte, counts []SeverityCount) []byte {
	o := openObject(out)
	for _, c := range counts {
		o.number(c.Severity, c.Count)
	}
	return o.close()
}
