package issues

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	workflowsv1 "github.com/palisade/palisade/gen/palisade/workflows/v1"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	detectionPrefix = "DETECTION_STATE_"
	triagePrefix    = "TRIAGE_STATE_"
	reasonPrefix    = "TRIAGE_REASON_"
)

// Words returns the stored word of an enum value: open for TRIAGE_STATE_OPEN. The zero value is "".
func Words(value interface {
	String() string
},
) string {
	name := value.String()
	for _, prefix := range []string{detectionPrefix, triagePrefix, reasonPrefix} {
		if word, ok := strings.CutPrefix(name, prefix); ok && word != "UNSPECIFIED" {
			return strings.ToLower(word)
		}
	}
	return ""
}

// DetectionState is the value of a stored word.
func DetectionState(word string) workflowsv1.DetectionState {
	return workflowsv1.DetectionState(workflowsv1.DetectionState_value[detectionPrefix+strings.ToUpper(word)])
}

// TriageState is the value of a stored word.
func TriageState(word string) workflowsv1.TriageState {
	return workflowsv1.TriageState(workflowsv1.TriageState_value[triagePrefix+strings.ToUpper(word)])
}

// TriageReason is the value of a stored word; empty is none.
func TriageReason(word string) workflowsv1.TriageReason {
	return workflowsv1.TriageReason(workflowsv1.TriageReason_value[reasonPrefix+strings.ToUpper(word)])
}

// Convert converts a row to the API's form.
func Convert(row *ent.AgenticIssue) (*workflowsv1.Issue, error) {
	details, err := detailsOf(row)
	if err != nil {
		return nil, err
	}
	out := &workflowsv1.Issue{
		Id: row.ID, DeploymentId: row.DeploymentID, Title: row.Title, Description: row.Description, Reasoning: row.Reasoning,
		CreatedAt: timestamppb.New(store.Time(row.CreatedAt)), LastDetectedAt: timestamppb.New(store.Time(row.LastDetectedAt)),
		DetectionState: DetectionState(row.DetectionState), Severity: workflowsv1.Severity(row.Severity),
		TriageState: TriageState(row.TriageState), TriageReason: TriageReason(row.TriageReason),
		Actions: details.GetActions(), WorkflowIds: details.GetWorkflowIds(), Identities: details.GetIdentities(),
		TriggerSources: details.GetTriggerSources(), RefIds: details.GetRefIds(), FilePaths: details.GetFilePaths(),
		DependencyPaths: details.GetDependencyPaths(), DirectDependencies: details.GetDirectDependencies(),
		Domains: details.GetDomains(), Cwes: details.GetCwes(), Owasps: details.GetOwasps(),
	}
	if row.TriagedAt != nil {
		out.TriagedAt = timestamppb.New(store.Time(*row.TriagedAt))
	}
	if row.ProjectID != nil {
		out.ProjectIds = []string{strconv.FormatInt(*row.ProjectID, 10)}
	}
	return out, nil
}

func detailsOf(row *ent.AgenticIssue) (*storev1.AgenticIssueDetails, error) {
	details := &storev1.AgenticIssueDetails{}
	return details, proto.Unmarshal(row.Details, details)
}
