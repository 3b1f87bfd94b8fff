// Package host is a client of source-code hosts: GitHub (with GitHub Enterprise) and GitLab (with self-managed
// servers), based on their maintained client libraries. It does not use the database or the RPCs.
//
// A Host never retries by itself: each request ends with its context or the client's timeout. All errors are *Error,
// with a text for the person who set up the connection. The credential is sent only to the host's own address: a
// redirect or link to another address is an error.
package host
