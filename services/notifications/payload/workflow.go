package payload

import (
	"bytes"
	"encoding/json"
	"time"
)

// workflowKey is the only key of the message of a workflow.
const workflowKey = "palisade_workflow"

// WorkflowMessage is what a step of a workflow has to say.
type WorkflowMessage struct {
	DeploymentID int64
	// Workflow is its name, RunID the id of the run.
	Workflow string
	RunID    int64
	// ProjectID is null for 0.
	ProjectID int64
	// Title is one line, Text plain text.
	Title, Text string
	SentAt      time.Time
}

// Workflow is the body of the message of a workflow: one object. The contract knows no such message: its key tells it
// from those of the contract, and a receiver that does not know it finds nothing in it that it knows.
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
	o.text("sent_at", moment(m.SentAt))
	wrapper.out = o.close()
	return wrapper.close()
}

// workflowMessage reads the texts for people of a body that Workflow made; ok is false for any other.
func workflowMessage(body []byte) (title, text string, ok bool) {
	if !bytes.HasPrefix(body, []byte(`{"`+workflowKey+`":`)) {
		return "", "", false
	}
	var wrapper struct {
		Message struct {
			Title string `json:"title"`
			Text  string `json:"message"`
		} `json:"palisade_workflow"`
	}
	err := json.Unmarshal(body, &wrapper)
	return wrapper.Message.Title, wrapper.Message.Text, err == nil
}
