// Package ingest stores the results of scans as findings. All report formats use it: an importer passes its results as
// a [Source].
//
// An import has four steps. [Read] prepares the results before the transaction, so that it holds no lock: it computes
// the future finding of each result and spools it (read.go, journal.go, traces.go). [Store] does the rest in the
// transaction. It matches the evidence with the stored findings of the same ref (match.go) and of other refs
// (match_foreign.go); package findings/identity has the ladder. It writes new and changed findings (write.go), with
// fingerprints for new identities (write_names.go). Last, it closes findings that the scan covered but did not report
// (close.go, coverage.go), or holds these closes if they are too many at once (held.go). Evidence of an older version
// of the ladder is recomputed (upgrade.go).
package ingest
