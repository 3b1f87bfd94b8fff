// Package policies serves a deployment's remediation policies as a bundle that is read, previewed and applied as a
// whole (docs/policies.md). Package remediation evaluates them.
package policies
