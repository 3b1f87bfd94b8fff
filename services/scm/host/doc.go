// Package host speaks to source-code hosts: GitHub (with GitHub Enterprise) and GitLab (with self-managed ones),
// through their own well-kept clients. It knows neither our database nor our RPCs.
//
// A Host never waits and tries again by itself: every call is over when its context or the client's time limit is, and
// what went wrong is an *Error whose text can be shown to the person who set the connection up. The credential goes to
// the host's own address only: a redirect or a link to anywhere else is an error.
package host
