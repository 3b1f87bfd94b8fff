package issues

import (
	"encoding/hex"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/workflows/issues/identity"
	"github.com/palisade/palisade/services/workflows/step"
)

// decide computes the issue's new state from the result.
func (e *entry) decide(call step.Call, now int64) error {
	switch {
	case e.isIssue():
		return e.detect(call, now)
	case e.before != nil && e.Verified == VerifiedAbsent:
		after := *e.before
		after.DetectionState = stateAbsent
		e.after = &after
	}
	return nil
}

// detect applies a result that is an issue. A person's triage decision stays, except "fixed": the issue is then
// reopened. One run reopens an issue only once, because a person may have decided again in between.
func (e *entry) detect(call step.Call, now int64) error {
	after := &ent.AgenticIssue{
		DeploymentID: call.DeploymentID, ProjectID: call.ProjectID, Identity: e.identity, Class: clip(identity.Class(e.Class), maxValue),
		FilePath: e.File, TriageState: triageOpen, CreatedAt: now, DetectionState: Detected,
	}
	details := &storev1.AgenticIssueDetails{}
	if e.before != nil {
		copied := *e.before
		after = &copied
		if err := proto.Unmarshal(e.before.Details, details); err != nil {
			return err
		}
	}
	known := labelsOf(details)
	e.mergeDetails(details, call)
	for l := range labelsOf(details) {
		if !known[l] {
			e.labels = append(e.labels, l)
		}
	}
	stored, err := proto.MarshalOptions{Deterministic: true}.Marshal(details)
	if err != nil {
		return err
	}
	after.Details, after.LastDetectedAt = stored, now
	after.Title, after.Description, after.Reasoning = clip(e.Title, maxTitle), clip(e.Description, maxText), clip(e.Reasoning, maxText)
	after.Severity = int32(severityOf(e.Severity))
	after.DetectionState = e.detectionState(after.DetectionState)
	if after.TriageState == triageFixed && !e.reported {
		after.TriageState, after.TriageReason = triageReopened, ""
	}
	e.after = after
	return nil
}

// detectionState returns the detection state after this detection.
func (e *entry) detectionState(before string) string {
	switch {
	case e.Verified == VerifiedPresent:
		return statePresent
	case before == statePresent, e.reported:
		return before
	}
	return Detected
}

// mergeDetails merges the detection's values into the lists of the issue.
func (e *entry) mergeDetails(d *storev1.AgenticIssueDetails, call step.Call) {
	d.Actions = union(d.GetActions(), e.Actions...)
	d.WorkflowIds = union(d.GetWorkflowIds(), call.Workflow)
	d.Identities = union(d.GetIdentities(), e.Identities...)
	d.TriggerSources = union(d.GetTriggerSources(), call.TriggerSource)
	if !isCommit(call.GitRef) {
		d.RefIds = union(d.GetRefIds(), gitref.Full(call.GitRef))
	}
	d.FilePaths = union(d.GetFilePaths(), e.File)
	d.DependencyPaths = union(d.GetDependencyPaths(), e.DependencyPaths...)
	d.DirectDependencies = union(d.GetDirectDependencies(), e.DirectDependencies...)
	d.Domains = union(d.GetDomains(), e.Domains...)
	d.Cwes = union(d.GetCwes(), e.CWEs...)
	d.Owasps = union(d.GetOwasps(), e.OWASPs...)
	d.StartLine, d.EndLine = max(e.StartLine, 0), max(e.EndLine, 0)
}

// labelsOf returns the values that callers can filter by.
func labelsOf(d *storev1.AgenticIssueDetails) map[label]bool {
	labels := map[label]bool{}
	for kind, values := range map[string][]string{
		LabelWorkflow: d.GetWorkflowIds(), LabelAction: d.GetActions(), LabelIdentity: d.GetIdentities(),
		LabelTriggerSource: d.GetTriggerSources(), LabelRef: d.GetRefIds(), LabelFilePath: d.GetFilePaths(),
	} {
		for _, value := range values {
			labels[label{kind, value}] = true
		}
	}
	return labels
}

// reason explains an automatic change of an issue.
func (e *entry) reason() string {
	switch {
	case e.Verified == VerifiedAbsent:
		return "verified to be absent"
	case e.before == nil:
		return "detected first"
	case e.Verified == VerifiedPresent:
		return "verified to be present"
	}
	return "detected again"
}

// isCommit distinguishes a commit from a branch or tag. Later runs do not share a commit as a ref.
func isCommit(ref string) bool {
	if len(ref) != 40 && len(ref) != 64 {
		return false
	}
	_, err := hex.DecodeString(strings.ToLower(ref))
	return err == nil
}
