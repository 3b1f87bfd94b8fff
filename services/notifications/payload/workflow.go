package payload

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
)

// workflowKey is the only key of a workflow message.
const workflowKey = "palisade_workflow"

// WorkflowMessage is a message from a workflow step.
type WorkflowMessage struct {
	DeploymentID int64
	// Workflow is the workflow's name, RunID the run's id.
	Workflow string
	RunID    int64
	// ProjectID is null for 0.
	ProjectID int64
	// Title is one line, Text is plain text.
	Title, Text string
	SentAt      time.Time
}

// Workflow is the body of a workflow message: one object. The contract has no such message. Its key distinguishes it
// from the contract's messages, and receivers that do not know it ignore it.
func Workflow(m WorkflowMessage) []byte {
	wrapper := openObject(nil)
	wrapper.key(workflowKey)
	o := openObject(wrapper.out)
	o.number("deployment_id", m.DeploymentID)
	o.text("workflow", m.Workflow)
	o.number("job_id", m.RunID)
	if m.ProjectID == 0 {
		o.textOrNull("project_id", "")
	} else {
		o.number("project_id", m.ProjectID)
	}
	o.text("title", m.Title)
	o.text("message", m.Text)
	o.text("sent_at", formatTime(m.SentAt))
	wrapper.out = o.close()
	return wrapper.close()
}

// own is what messages that the contract does not have say.
type own struct {
	Title, Message, Link string
	ScanID               int64 `json:"scan_id"`
}

// ownMessage parses a body of a message that the contract does not have; ok is false for others.
func ownMessage(body []byte) (message own, ok bool) {
	isOwn := func(key string) bool { return bytes.HasPrefix(body, []byte(`{"`+key+`":`)) }
	if !slices.ContainsFunc([]string{workflowKey, heldKey, ruleAlertKey, freshnessKey, reportKey, automationKey, policyKey, digestKey, collectedKey}, isOwn) {
		return own{}, false
	}
	var wrapper map[string]own
	err := json.Unmarshal(body, &wrapper)
	for _, one := range wrapper { // there is one
		message = one
	}
	return message, err == nil
}
