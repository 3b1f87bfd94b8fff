// Package findings serves what scans found and what people decided about it: the service groups findings, secrets and
// triage.
package findings
