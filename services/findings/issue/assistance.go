package issue

import (
	"strings"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// addAssistance adds what AI said. Texts come from the finding. Ids, memories and feedback come from the last analysis;
// verdicts of workflows have none.
func (a *relatedRows) addAssistance(out *findingsv1.Issue, row *ent.Finding, content *storev1.FindingContent) {
	said, last := content.GetAssistant(), a.analyses[row.ID]
	id := ""
	if last == nil {
		last = &analysis{}
	} else {
		id = text(last.id)
	}
	if row.AutotriageVerdict != nil {
		out.Autotriage = &findingsv1.IssueAutotriage{
			Id: id, IssueId: row.ID, MatchBasedId: out.GetMatchBasedId(), Reason: said.GetAutotriage().GetReason(), Feedback: last.feedback,
			Verdict:             enumOf[findingsv1.Verdict](findingsv1.Verdict_value, "VERDICT_", *row.AutotriageVerdict),
			MemoryIdsReferenced: last.result.GetMemoryIdsReferenced(), MemoryIdsRendered: last.result.GetMemoryIdsRendered(),
		}
	}
	if component := said.GetComponent(); component != nil {
		out.AiTags = &findingsv1.SensitivityTags{
			Id: id, Path: out.GetFilePath(), Tags: component.GetTag(),
			Sensitivity: findingsv1.Sensitivity(findingsv1.Sensitivity_value["SENSITIVITY_"+strings.ToUpper(component.GetRisk())+"_SENSITIVITY"]),
		}
	}
	if fix, advice := said.GetAutofix(), said.GetGuidance(); fix != nil || advice != nil {
		out.Remediation = &findingsv1.Remediation{IssueId: row.ID, MatchBasedId: out.GetMatchBasedId()}
		if fix != nil {
			out.Remediation.Autofix = &findingsv1.IssueAutofix{Id: id, FixCode: fix.GetFixCode(), Explanation: fix.GetExplanation()}
			if last.result.GetFixCode() == fix.GetFixCode() {
				out.Remediation.Autofix.FixDiff = last.result.GetFixDiff()
			}
			if prs := content.GetClickToFixPrs(); len(prs) > 0 {
				out.Remediation.Autofix.Url = prs[len(prs)-1].GetUrl()
			}
		}
		if advice != nil {
			out.Remediation.Guidance = &findingsv1.IssueGuidance{
				Id: id, Summary: advice.GetSummary(), GuidanceText: advice.GetInstructions(), MemoryIdsUsed: last.result.GetMemoryIdsRendered(),
			}
		}
	}
	if rule := said.GetRuleExplanation(); rule != nil {
		out.RuleExplanation = &findingsv1.RuleExplanation{Id: id, Summary: rule.GetSummary(), Explanation: rule.GetExplanation()}
	}
}
