// Package findings serves what scans found and what people decided about it: the service groups findings, secrets,
// triage and finding identity. Package list makes the pages of findings.
package findings
