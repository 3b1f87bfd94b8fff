// Package vocabulary has the API's terms for findings. Readers of reports and services that return findings share it.
package vocabulary

// The products of findings: their issue types.
const (
	SAST    = "sast"
	SCA     = "sca"
	Secrets = "secrets"
	// AISAST is code findings of a detection by AI.
	AISAST = "ai_sast"
)

// Products are all products.
var Products = []string{SAST, SCA, Secrets, AISAST}

// The severities of a finding.
const (
	SeverityLow      = "low"
	SeverityMedium   = "medium"
	SeverityHigh     = "high"
	SeverityCritical = "critical"
)

// The confidences of a rule.
const (
	ConfidenceLow    = "low"
	ConfidenceMedium = "medium"
	ConfidenceHigh   = "high"
)
