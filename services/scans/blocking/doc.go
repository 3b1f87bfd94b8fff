// Package blocking has the rules by which a scan's findings count for remediation policies: what a finding is compared
// with, when it is new, and when a decision covers it. The gate of scans and the back-test of policies share them.
package blocking
