package list

import "slices"

// Selection are the filter fields of requests that act on chosen findings: triage and tickets.
type Selection interface {
	GetIssueType() string
	GetIssueIds() []int64
	GetSince() float64
	GetRepos() []string
	GetProjectTags() []string
	GetRepositoryVisibility() []string
	GetRef() string
	GetStatus() string
	GetTriageReasons() []string
	GetSeverities() []string
	GetComponentTags() []string
	GetPolicies() []string
	GetPolicyMode() []string
	GetRules() []string
	GetCategories() []string
	GetConfidence() string
	GetAutotriageVerdict() string
	GetExposures() []string
	GetTransitivities() []string
	GetDependencies() []string
	GetEpssProbability() []string
	GetSecretTypes() []string
	GetValidationState() []string
	GetIncludeHistorical() bool
}

// FilterOf converts the fields to a strict filter. The caller adds the ids, which include historical secrets.
func FilterOf(deploymentID int64, r Selection) *Filter {
	return &Filter{
		DeploymentID:      deploymentID,
		IssueType:         r.GetIssueType(),
		Strict:            true,
		Since:             r.GetSince(),
		Repos:             r.GetRepos(),
		ProjectTags:       r.GetProjectTags(),
		Visibilities:      r.GetRepositoryVisibility(),
		Refs:              oneOrNone(r.GetRef()),
		Statuses:          oneOrNone(r.GetStatus()),
		TriageReasons:     r.GetTriageReasons(),
		Severities:        r.GetSeverities(),
		ComponentTags:     r.GetComponentTags(),
		Policies:          slices.Concat(r.GetPolicies(), r.GetPolicyMode()),
		Rules:             r.GetRules(),
		Categories:        r.GetCategories(),
		Confidences:       oneOrNone(r.GetConfidence()),
		Verdicts:          oneOrNone(r.GetAutotriageVerdict()),
		Exposures:         r.GetExposures(),
		Transitivities:    r.GetTransitivities(),
		Dependencies:      r.GetDependencies(),
		EPSS:              r.GetEpssProbability(),
		SecretTypes:       r.GetSecretTypes(),
		ValidationStates:  r.GetValidationState(),
		IncludeHistorical: r.GetIncludeHistorical() || len(r.GetIssueIds()) > 0,
	}
}

// oneOrNone returns the value of an optional filter as a list.
func oneOrNone(word string) []string {
	if word == "" {
		return nil
	}
	return []string{word}
}
