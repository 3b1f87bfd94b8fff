// Package vocabulary has the words of the API for findings that all who read reports and all who tell of findings
// share.
package vocabulary

// The products that findings belong to: their issue types.
const (
	SAST    = "sast"
	SCA     = "sca"
	Secrets = "secrets"
)

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
