// Package scans serves scans and takes in what scanners report: the service groups scans and report uploads.
//
// A report goes through three steps: it is spooled to a file, read once to check all of it (package sarif), and stored
// in one transaction (ingest.go), so that a broken or interrupted upload leaves nothing behind.
package scans
