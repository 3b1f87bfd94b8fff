package payload

import "time"

// Sample is the body of a test message: an invented finding in the real format.
func Sample(at time.Time) []byte {
	return Findings([]Finding{{
		CheckID: "palisade.test-notification", Path: "app/login.py", Line: 42, Column: 9, EndLine: 42, EndColumn: 31,
		Message: "This is a test of a notification from Palisade. Nothing was found.", Severity: "low",
		CommittedAt: at, CommitURL: "", Ref: "refs/heads/main", RepoName: "palisade/test", CreatedAt: at,
		Metadata: Metadata{Category: "test", Confidence: "low"},
	}})
}
