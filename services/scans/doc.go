// Package scans serves scans and takes in what scanners report: the service groups scans and report uploads, and the
// protocol of scanners.
//
// A report goes through three steps: it is spooled and read once to check all of it (package sarif; package scanner),
// its results are read and put aside, and stored in one transaction, so that a broken or interrupted upload leaves
// nothing behind.
//
// All results are stored in one way, by package ingest. Before the transaction their evidence is collected, so that
// nobody waits for that; what a scanner sent is collected inside of it (scanner_job.go). Stored evidence is made anew
// when the ladder of identities has a new version (identity_upgrade.go).
package scans
