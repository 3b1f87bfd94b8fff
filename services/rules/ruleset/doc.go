// Package ruleset holds the rules of a deployment: it stores them, chooses those that a scanner gets, and renders them
// as the one document that it reads. It has no RPCs: the service groups of rules and of scans share it.
package ruleset
