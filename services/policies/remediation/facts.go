package remediation

import "github.com/palisade/palisade/ent"

// FactsOf are the properties of a finding itself, without its project, its base and its status. of is its rule; it may
// be nil.
func FactsOf(f *ent.Finding, of *ent.Rule) Facts {
	facts := Facts{
		Product: f.IssueType, Severity: f.Severity,
		Reachability: text(f.Exposure), ValidationState: text(f.ValidationState), Verdict: text(f.AutotriageVerdict),
	}
	if of != nil {
		facts.RuleName, facts.Category, facts.Confidence = of.Name, of.Category, of.Confidence
	}
	return facts
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
