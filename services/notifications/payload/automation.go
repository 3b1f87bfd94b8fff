package payload

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Only keys of messages of automations and of remediation policies.
const (
	automationKey = "palisade_automation"
	policyKey     = "palisade_policy"
)

// MaxListed is the maximum number of findings that a message of an automation or policy lists.
const MaxListed = 50

// Automation tells which findings the filters of an automation or of a remediation policy matched.
type Automation struct {
	DeploymentID int64
	// AutomationID is the id of the automation, PolicySlug the slug of the policy. The other one is empty.
	AutomationID int64
	PolicySlug   string
	Name         string
	// Cause is scan, triage or day, CauseID the id of the scan or triage change, or the day since 1970.
	Cause   string
	CauseID int64
	// ProjectID is null for 0: findings of several projects.
	ProjectID int64
	// Matched is the number of findings. Findings has the worst ones, the worst first.
	Matched  int64
	Findings []AutomationFinding
	SentAt   time.Time
}

// AutomationFinding is a finding in a message of an automation or policy.
type AutomationFinding struct {
	ID                                 int64
	Project, Ref, Rule, Severity, Path string
}

// Body is the body of the message: one object. The contract has no such message.
func (a Automation) Body() []byte {
	wrapper := openObject(nil)
	key := automationKey
	if a.PolicySlug != "" {
		key = policyKey
	}
	wrapper.key(key)
	o := openObject(wrapper.out)
	o.number("deployment_id", a.DeploymentID)
	if a.PolicySlug != "" {
		o.text("policy_slug", a.PolicySlug)
		o.text("policy", a.Name)
	} else {
		o.number("automation_id", a.AutomationID)
		o.text("automation", a.Name)
	}
	o.text("cause", a.Cause)
	o.number("cause_id", a.CauseID)
	if a.ProjectID == 0 {
		o.textOrNull("project_id", "")
	} else {
		o.number("project_id", a.ProjectID)
	}
	o.number("matched", a.Matched)
	ids := make([]string, len(a.Findings))
	for i, f := range a.Findings {
		ids[i] = strconv.FormatInt(f.ID, 10)
	}
	o.texts("finding_ids", ids)
	o.text("title", a.title())
	o.text("message", a.text())
	o.text("sent_at", formatTime(a.SentAt))
	wrapper.out = o.close()
	return wrapper.close()
}

func (a Automation) title() string {
	if a.Matched == 1 {
		return oneLine(a.Name) + ": 1 finding"
	}
	return fmt.Sprintf("%s: %d findings", oneLine(a.Name), a.Matched)
}

func (a Automation) text() string {
	var out strings.Builder
	for _, f := range a.Findings {
		fmt.Fprintf(&out, "%s: %s at %s in %s (%s), finding %d\n", f.Severity, oneLine(f.Rule), oneLine(f.Path), oneLine(f.Project),
			strings.TrimPrefix(oneLine(f.Ref), "refs/heads/"), f.ID)
	}
	if more := a.Matched - int64(len(a.Findings)); more > 0 {
		fmt.Fprintf(&out, "and %d more\n", more)
	}
	return out.String()
}
