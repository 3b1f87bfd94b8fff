// Package columns computes reports from compact columns of all findings of a deployment and of the history of their
// status. It knows neither the database nor the API.
//
// A [Snapshot] never changes; [Table.With] makes the next one and shares what has not changed, so that those who read
// one never wait. Times are whole seconds since 1970 UTC: what happened in the second that a time lies in counts as
// before it.
package columns
