package payload

import (
	"fmt"
	"strings"
	"time"
)

// ruleAlertKey is the only key of a message about rules.
const ruleAlertKey = "palisade_rule_alert"

// RuleAlert says that rules are quarantined, or that all scans fail since the rules changed.
type RuleAlert struct {
	DeploymentID, ProjectID, ScanID int64
	Project                         string
	// Quarantined are the names and reasons of rules that scans do not get any more.
	Quarantined [][2]string
	// FailingSince is when the rules changed. It counts if no rules are quarantined.
	FailingSince time.Time
	// ExitCode is the exit code of the scan.
	ExitCode int32
	SentAt   time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// Body is the body of the message: one object. The contract has no such message.
func (a RuleAlert) Body() []byte {
	wrapper := openObject(nil)
	wrapper.key(ruleAlertKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", a.DeploymentID)
	o.text("event", a.event())
	names := make([]string, len(a.Quarantined))
	for i, rule := range a.Quarantined {
		names[i] = rule[0]
	}
	o.texts("rules", names)
	o.number("project_id", a.ProjectID)
	o.text("project", a.Project)
	o.number("scan_id", a.ScanID)
	o.number("exit_code", int64(a.ExitCode))
	o.text("title", a.title())
	o.text("message", a.text())
	o.text("sent_at", formatTime(a.SentAt))
	o.text("tenant_name", a.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func (a RuleAlert) event() string {
	if len(a.Quarantined) > 0 {
		return "rules_quarantined"
	}
	return "scans_failing"
}

func (a RuleAlert) title() string {
	switch len(a.Quarantined) {
	case 0:
		return "All scans of " + a.TenantName + " fail since its rules changed"
	case 1:
		return "Rule " + a.Quarantined[0][0] + " is quarantined"
	}
	return fmt.Sprintf("%d rules are quarantined", len(a.Quarantined))
}

func (a RuleAlert) text() string {
	var out strings.Builder
	if len(a.Quarantined) == 0 {
		fmt.Fprintf(&out, "The rules changed at %s. No scan has succeeded since. The last one, scan %d of %s, ended with exit code %d: "+
			"4, 5, 7 and 8 mean a rule that the scanner cannot load.\n", formatTime(a.FailingSince), a.ScanID, oneLine(a.Project), a.ExitCode)
		out.WriteString("Look at the log of that job. Check the rules: palisade rules validate DIR\nLeave a rule out: palisade rules mode off NAME\n")
		return out.String()
	}
	fmt.Fprintf(&out, "Scan %d of %s reported them as broken. Scans do not get them any more; their findings stay.\n", a.ScanID, oneLine(a.Project))
	for _, rule := range a.Quarantined {
		fmt.Fprintf(&out, "%s: %s\n", oneLine(rule[0]), oneLine(rule[1]))
	}
	out.WriteString("Correct them and import them again, or, if they are right: palisade rules release NAME\n")
	return out.String()
}
