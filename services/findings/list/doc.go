// Package list serves the list of findings of the API in pages, newest first.
//
// [Lister.Page] serves a page in four steps:
//
//  1. The [Filter] of the request becomes conditions (filter.go) and a query plan (plan.go): the plain conditions, a
//     merge over the values of one column (merge.go), or a merge of the newest findings of each project (topn.go).
//  2. The listing session finds the cursor where the page begins, or counts the rows before it (session.go). Cursors
//     are stored in memory (cursors.go) or in PostgreSQL (cursors_postgres.go).
//  3. One statement reads the rows after the cursor (read.go). It skips imports that are not committed (pending.go).
//  4. Each row becomes a message (row.go), completed with its rule and its project (catalog.go).
//
// Triage and the list of secrets page differently. They use only the conditions of a [Filter] and the order of lists.
package list
