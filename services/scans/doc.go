// Package scans serves scans and takes in what scanners report: the service groups scans and report uploads, and the protocol of
// scanners.
//
// A report goes through three steps: it is spooled and read once to check all of it (package sarif; package scanner), its results
// are read and put aside, and stored in one transaction, so that a broken or interrupted upload leaves nothing behind.
//
// All results are stored in one way, whatever format they came in: as incoming results of a source. Before the transaction their
// evidence is collected (prepare in ingest_prepare.go), so that nobody waits for that; what a scanner sent is collected inside of it
// (scanner_job.go). In the transaction (storeResults in ingest.go)
// it is matched with the findings that are stored (ingest_match.go: those of the same ref; ingest_foreign.go: those of other refs;
// package findings/identity has the ladder). Then they are written in batches (ingest_findings.go), new identities get their names
// (ingest_names.go), and what was not seen is judged by what the scan looked at (coverage.go, ingest_close.go). Evidence of an older
// version of the ladder is made anew (identity_upgrade.go).
package scans
