package issue

import (
	"cmp"
	"strings"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/projects/codehost"
)

// addAttributes adds the attributes of one type of findings.
func (a *relatedRows) addAttributes(out *findingsv1.Issue, row *ent.Finding, content *storev1.FindingContent) {
	switch row.IssueType {
	case "sca":
		out.ScaAttributes = a.supplyChain(row, content)
		if out.ScaAttributes.GetVulnDatabaseIdentifier() != "" {
			out.VulnGroupKey = out.ScaAttributes.GetVulnDatabaseIdentifier() + ":" + out.ScaAttributes.GetFoundDependency().GetPackage()
		}
	case "secrets":
		out.SecretsAttributes = a.secret(row, content)
	default:
		out.SastAttributes = &findingsv1.IssueSastAttributes{}
	}
}

func (a *relatedRows) secret(row *ent.Finding, content *storev1.FindingContent) *findingsv1.IssueSecretsAttributes {
	out := &findingsv1.IssueSecretsAttributes{
		SecretType:      cmp.Or(a.rules[row.RuleID].GetSecretType(), a.rules[row.RuleID].GetName()),
		ValidationState: enumOf[findingsv1.ValidationState](findingsv1.ValidationState_value, "VALIDATION_STATE_", value(row.ValidationState)),
	}
	if content.GetHistoricalCommit() != "" {
		out.HistoricalInfo = &findingsv1.HistoricalInfo{
			GitCommit: content.GetHistoricalCommit(), GitBlob: content.GetHistoricalBlob(), GitCommitTimestamp: content.GetHistoricalCommitAt(),
		}
	}
	return out
}

func (a *relatedRows) supplyChain(row *ent.Finding, content *storev1.FindingContent) *findingsv1.IssueScaAttributes {
	exposure := value(row.Exposure)
	out := &findingsv1.IssueScaAttributes{
		Severity:               enumOf[findingsv1.Severity](findingsv1.Severity_value, "SEVERITY_", row.Severity),
		VulnDatabaseIdentifier: content.GetVulnerabilityIdentifier(),
		Reachability:           enumOf[findingsv1.Reachability](findingsv1.Reachability_value, "REACHABILITY_", exposure),
		ReachableCondition:     content.GetReachableCondition(),
		Cwes:                   a.rules[row.RuleID].GetCweNames(),
		RulePublishDate:        a.rules[row.RuleID].GetPublishedAt(),
		ScaRuleKind:            ruleKind(row.Malicious, exposure),
		ScaMatchInfo:           &findingsv1.ScaMatchInfo{MatchKind: matchKind(value(row.Transitivity), exposure)},
	}
	if known := a.exploits.Exploit(value(row.Advisory)); known != nil {
		out.KnownExploit = &findingsv1.ScaKnownExploit{ListedAt: known.GetListedAt(), DueAt: known.GetDueAt(), Ransomware: known.GetRansomware()}
	}
	found, owner := content.GetFoundDependency(), a.projects[row.ProjectID]
	lockfile, line := blob.Lockfile(content)
	out.FoundDependency = &findingsv1.ScaFoundDependency{
		Package: found.GetPackage(), Version: found.GetVersion(), Ecosystem: found.GetEcosystem(), Transitivity: "UNKNOWN_TRANSITIVITY",
		FilePath: lockfile, ManifestFilePath: content.GetManifest(),
		LockfileLineUrl: codehost.LineURL(owner.ScmType, owner.URL, content.GetCommit(), lockfile, max(line, 1)),
	}
	if found.GetEcosystem() == "" {
		out.FoundDependency.Ecosystem = "no_package_manager"
	}
	if way := value(row.Transitivity); way == "direct" || way == "transitive" {
		out.FoundDependency.Transitivity = strings.ToUpper(way)
	}
	for _, fix := range content.GetFixRecommendations() {
		out.FixRecommendations = append(out.FixRecommendations, &findingsv1.ScaFixRecommendation{Package: fix.GetPackage(), Version: fix.GetVersion()})
	}
	if len(out.FixRecommendations) > 0 {
		out.BestFix = out.FixRecommendations[0]
	}
	if score := a.exploits.Score(value(row.Advisory)); score != nil {
		out.EpssScore = &findingsv1.ScaEpssScore{
			Score: score.GetScore(), Percentile: score.GetPercentile(), UpdatedAt: a.exploits.ScoredAt(value(row.Advisory)),
			Categorization: enumOf[findingsv1.EpssProbability](findingsv1.EpssProbability_value, "EPSS_PROBABILITY_", a.exploits.Probability(value(row.Advisory))),
		}
	}
	return out
}

// ruleKind is the kind of the rule. The filter scaRuleKind uses the same definition.
func ruleKind(malicious *bool, exposure string) findingsv1.ScaRuleKind {
	switch {
	case malicious != nil && *malicious:
		return findingsv1.ScaRuleKind_SCA_RULE_KIND_MALICIOUS_DEPENDENCY
	case exposure == "reachable" || exposure == "unreachable":
		return findingsv1.ScaRuleKind_SCA_RULE_KIND_REACHABLE
	}
	return findingsv1.ScaRuleKind_SCA_RULE_KIND_UPGRADE_ONLY
}

// matchKind is how the dependency was found. The exposures always_reachable and conditionally_reachable are known from
// the version alone, without an analysis of the code.
func matchKind(transitivity, exposure string) findingsv1.ScaMatchKind {
	known, used := exposure != "" && exposure != "unknown", exposure == "reachable"
	switch {
	case exposure == "always_reachable" || exposure == "conditionally_reachable":
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_LOCKFILE_ONLY
	case transitivity == "transitive" && !known:
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_TRANSITIVE_UNDETERMINED
	case transitivity == "transitive" && used:
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_TRANSITIVE_REACHABLE
	case transitivity == "transitive":
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_TRANSITIVE_UNREACHABLE
	case transitivity == "direct" && known && used:
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_DIRECT_REACHABLE
	case transitivity == "direct" && known:
		return findingsv1.ScaMatchKind_SCA_MATCH_KIND_DIRECT_UNREACHABLE
	}
	return findingsv1.ScaMatchKind_SCA_MATCH_KIND_LOCKFILE_ONLY
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
