package payload

import (
	"fmt"
	"strings"
	"time"
)

// freshnessKey is the only key of a message about freshness.
const freshnessKey = "palisade_freshness"

// Freshness says that the freshness of an analysis changed its state.
type Freshness struct {
	DeploymentID, ProjectID, ScanID int64
	Project, Ref, Tool, Category    string
	State, Before, Reason           string
	Since                           time.Time
	SentAt                          time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// Body is the body of the message: one object. The contract has no such message.
func (f Freshness) Body() []byte {
	wrapper := openObject(nil)
	wrapper.key(freshnessKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", f.DeploymentID)
	o.number("project_id", f.ProjectID)
	o.text("project", f.Project)
	o.text("ref", f.Ref)
	o.text("tool", f.Tool)
	o.text("category", f.Category)
	o.text("state", f.State)
	o.text("previous_state", f.Before)
	o.text("since", formatTime(f.Since))
	o.number("scan_id", f.ScanID)
	o.text("title", f.title())
	o.text("message", f.text())
	o.text("sent_at", formatTime(f.SentAt))
	o.text("tenant_name", f.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func (f Freshness) title() string {
	return fmt.Sprintf("Scans of %s (%s) by %s are %s", oneLine(f.Project), strings.TrimPrefix(f.Ref, "refs/heads/"), oneLine(f.Tool), f.State)
}

func (f Freshness) text() string {
	if f.Reason == "" {
		return fmt.Sprintf("They were %s before.\n", f.Before)
	}
	return f.Reason + "\nShow all: palisade freshness\n"
}
