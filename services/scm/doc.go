// Package scm serves the connections of deployments to source-code hosts: configurations, applications, webhooks in
// both directions and the content of review comments. What speaks to the hosts is in package host.
//
// No host is called inside a transaction: what a call needs is read before it, and what it brought is written after it,
// if the row still says what the call was made with.
package scm
