package issue

import (
	"strings"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/rulehelp"
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
			Id: id, IssueId: row.ID, MatchBasedId: out.GetMatchBasedId(), Reason: said.GetAutotriage().GetReason(), Feedback: last.latestFeedback(),
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
	limit := rulehelp.MaxListed
	if a.alone {
		limit = 0
	}
	if help := rulehelp.Explanation(a.rules[row.RuleID], limit); help != nil { // better than a model's text
		out.RuleExplanation = &findingsv1.RuleExplanation{Summary: help.GetSummary(), Explanation: help.GetExplanation()}
	} else if rule := said.GetRuleExplanation(); rule != nil {
		out.RuleExplanation = &findingsv1.RuleExplanation{Id: id, Summary: rule.GetSummary(), Explanation: rule.GetExplanation()}
	}
	if failure := said.GetFailure(); failure != nil {
		out.AnalysisFailure = &findingsv1.IssueFailure{CreatedAt: failure.GetCreatedAt(), Reason: failure.GetReason()}
	}
	out.FixFailure = fixFailure(content)
}

// fixFailure returns why the latest fix failed; nil if a pull request was opened after that.
func fixFailure(content *storev1.FindingContent) *findingsv1.IssueFailure {
	failures, pulls := content.GetClickToFixFailures(), content.GetClickToFixPrs()
	if len(failures) == 0 {
		return nil
	}
	last := failures[len(failures)-1]
	if len(pulls) > 0 && !pulls[len(pulls)-1].GetCreatedAt().AsTime().Before(last.GetCreatedAt().AsTime()) {
		return nil
	}
	return &findingsv1.IssueFailure{CreatedAt: last.GetCreatedAt(), Reason: last.GetReason()}
}

// latestFeedback is the latest rating of the verdict; nil if nobody rated it.
func (l *analysis) latestFeedback() *findingsv1.IssueAutotriageFeedback {
	if len(l.feedback) == 0 {
		return nil
	}
	row := l.feedback[len(l.feedback)-1]
	return &findingsv1.IssueAutotriageFeedback{
		AutotriageId: text(row.AnalysisID), Rating: findingsv1.Rating(findingsv1.Rating_value[row.Rating]), Note: row.Note,
	}
}
