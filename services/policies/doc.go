// Package policies serves what a deployment wants to happen with findings, as a bundle that is read, previewed and
// applied as a whole (docs/policies.md). What policies mean for the findings of a scan is in package remediation.
package policies
