// Package columns computes reports from a compact columnar form of all findings of a deployment and their status
// history. It does not use the database or the API.
//
// A [Snapshot] is immutable. [Table.With] builds the next one and shares unchanged data, so readers never wait. Times
// are whole seconds since 1970 UTC: an event in the same second as a time counts as before it.
package columns
