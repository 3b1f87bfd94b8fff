// Package scans implements the service groups scans and report uploads, and the protocol of scanners.
//
// A report is processed in three steps. It is spooled, and read once to validate all of it (packages sarif and
// scanner). Its results are read and prepared. They are stored in one transaction, so that a broken or interrupted
// upload leaves nothing behind.
//
// Package ingest stores all results. It computes their evidence before the transaction, so that no lock is held for
// long. For the results of scanners it does so within the transaction (scanner_job.go). Stored evidence is recomputed
// when the identity ladder has a new version (identity_upgrade.go).
package scans
