// Package ruleset stores a deployment's rules, selects the rules for a scanner, and renders them as one document. It
// has no RPCs: the service groups of rules and scans share it.
package ruleset
