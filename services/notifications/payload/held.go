package payload

import (
	"fmt"
	"strings"
	"time"
)

// heldKey is the only key of a message about held closes.
const heldKey = "palisade_held_closes"

// HeldCloses are closes that a scan decided and that wait, because they are too many at once.
type HeldCloses struct {
	ID, DeploymentID, ProjectID, ScanID   int64
	Project, Ref, Tool, Version, Category string
	// Count is the number of findings; Open is how many were open.
	Count, Open int64
	// NeedsPerson says that only a person can confirm the closes.
	NeedsPerson bool
	SentAt      time.Time
	// TenantName is the slug of the deployment.
	TenantName string
}

// Held is the body of a message about held closes: one object. The contract has no such message.
func Held(h HeldCloses) []byte {
	wrapper := openObject(nil)
	wrapper.key(heldKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", h.DeploymentID)
	o.number("id", h.ID)
	o.number("project_id", h.ProjectID)
	o.text("project", h.Project)
	o.text("ref", h.Ref)
	o.text("tool", h.Tool)
	o.text("tool_version", h.Version)
	o.text("category", h.Category)
	o.number("scan_id", h.ScanID)
	o.number("findings", h.Count)
	o.number("open", h.Open)
	o.text("title", h.title())
	o.text("message", h.text())
	o.text("sent_at", formatTime(h.SentAt))
	o.text("tenant_name", h.TenantName)
	wrapper.out = o.close()
	return wrapper.close()
}

func (h HeldCloses) title() string {
	return fmt.Sprintf("%d closes are held in %s (%s)", h.Count, h.Project, strings.TrimPrefix(h.Ref, "refs/heads/"))
}

func (h HeldCloses) text() string {
	analysis := h.Tool
	if h.Category != "" {
		analysis += ", category " + h.Category
	}
	next := "The next report that misses them too closes them."
	if h.NeedsPerson {
		next = "Closes of some of them were rejected before, so only a person can close them, or a report of another version of the tool."
	}
	return fmt.Sprintf("Scan %d of %s did not report %d of %d open findings. So many at once are often a broken scan, so they stay open for now. %s\n"+
		"Close them now: palisade closes confirm %d\nKeep them open: palisade closes reject %d\n", h.ScanID, analysis, h.Count, h.Open, next, h.ID, h.ID)
}
