// Package watch keeps the freshness of analyses: whether each tool still scans each branch that counts, as often as it
// used to and with as many results.
//
// A scan updates the rows of its analyses in the transaction that stores its results (record.go). Jobs do what no scan
// tells: time passes (due.go), scans fail (failed.go), and earlier versions stored scans (catchup.go). Package judge
// decides about the states. A transaction that changes a row locks it first, and writes the messages about a changed
// state (save.go), so each change is told once.
package watch
