// Package findings serves the service groups findings, secrets, triage and finding identity. Package list serves the
// pages of the list of findings.
package findings
