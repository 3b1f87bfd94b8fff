// Package ingest is the only way in for results of scans, whatever format they came in: an importer passes them as a
// [Source].
//
// It has four steps. [Read] takes the results in before the transaction, so that nobody waits for that: it makes of
// each what its finding would be, and puts it aside (read.go, journal.go, traces.go). [Store] does the others in the
// transaction. It matches the evidence with the findings that are stored (match.go: those of the same ref;
// match_foreign.go: those of other refs; package findings/identity has the ladder), writes those results that bring
// news (write.go; write_names.go names new identities), and closes what was not seen, by what the scan looked at
// (close.go, coverage.go). Evidence of an older version of the ladder is made anew (upgrade.go).
package ingest
