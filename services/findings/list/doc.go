// Package list makes pages of findings: the list of findings that the API serves, newest first.
//
// A page is made in four steps. The [Filter] of the request becomes conditions (filter.go), in the form that the
// database serves best (choose.go): as they are, merged from the values of one column (merge.go), or put together
// from the newest findings of a few projects (heads.go). The place where the page begins is the one where the page
// before it ended, or else it is counted (walk.go; places.go remembers places in the process, places_shared.go in
// PostgreSQL). The rows behind it are read with one statement (read.go), around imports that are not committed
// (pending.go). Each row becomes a message (row.go), with what it shows of its rule and its project (shown.go).
//
// [Lister.Page] does all of it. Triage and the list of secrets, which have no such pages, use the conditions of a
// [Filter] and the order of lists.
package list
