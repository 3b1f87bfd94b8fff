// Package egress is the only way out: every call to another host goes through its [Guard]. Tenants choose many of the
// hosts (webhook receivers, source-code hosts, buckets), so without it the server would be their door into the network
// that it stands in.
//
// The guard checks the address that is about to be connected to, not the name: whatever a name, a redirect or a second
// DNS answer leads to passes through the same check. Only public addresses are let out, unless the operator's allow
// list names the host or the address. Every call has a limit of time that closes its connection, and one of what is
// read. docs/decisions/0009-egress.md says why it is so and what it does not protect from.
package egress
