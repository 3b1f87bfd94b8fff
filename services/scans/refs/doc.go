// Package refs keeps the refs of projects tidy: it removes the findings of refs that nobody looks at any more, and
// renames the refs that earlier versions named wrongly.
//
// A sweep enqueues a job per deployment (sweep.go). It finds the refs with open findings (open.go), and removes the
// findings of refs that nothing scanned for a time (stale.go), of pull requests that are closed at their source-code
// host, and in files that are no longer part of an open pull request (pulls.go). Nothing disappears silently: each
// finding gets an event with the reason, and a scan that reports it again brings it back (remove.go).
package refs
