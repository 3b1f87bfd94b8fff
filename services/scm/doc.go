// Package scm serves the connections of deployments to source-code hosts: configurations, applications, webhooks in
// both directions and the content of review comments. Package host has the clients of the hosts.
//
// No host is called inside a transaction. The data for a request is read before it, and the result is written after it,
// if the row is still the one that the request was made for.
package scm
